// Command drover drives a herd of cloud VMs: it brings them in when there is work and sends them away when there is
// none. This file lists what is compiled in: the drivers, and the runners for instances.
package main

import (
	"os"

	"drover/driver/azure"
	"drover/driver/digitalocean"
	"drover/driver/ec2"
	"drover/driver/external"
	"drover/driver/gce"
	"drover/driver/hetzner"
	"drover/driver/openstack"
	"drover/internal/cli"
	"drover/internal/daemon"
)

// version is set by the build (see Makefile); a development build reports the version that Go recorded.
var version = "development"

func main() { os.Exit(cli.Main(program())) }

func program() daemon.Program {
	return daemon.Program{Version: version, Runners: embedded, Drivers: withLocal(map[string]daemon.Kind{
		"azure":        {Open: azure.Open, Keys: azure.Config{}},
		"ec2":          {Open: ec2.Open, Keys: ec2.Config{}},
		"gce":          {Open: gce.Open, Keys: gce.Config{}},
		"external":     {Open: external.Open, Keys: external.Config{}},
		"openstack":    {Open: openstack.Open, Keys: openstack.Config{}},
		"digitalocean": {Open: digitalocean.Open, Keys: digitalocean.Config{}},
		"hetzner":      {Open: hetzner.Open, Keys: hetzner.Config{}},
	})}
}
