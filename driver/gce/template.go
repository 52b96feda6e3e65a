package gce

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// readTemplate reads a raw template, in the words of the API's Instance.
func readTemplate(raw string) (*compute.Instance, error) {
	made := &compute.Instance{}
	hint := `it is JSON, with the keys of Instance in the Compute Engine API, such as {"minCpuPlatform": "Intel Ice Lake"}`
	if err := kit.DecodeTemplate(raw, made, hint); err != nil {
		return nil, err
	}
	if made.Name != "" || made.MachineType != "" || slices.ContainsFunc(made.Disks, func(d *compute.AttachedDisk) bool { return d != nil && d.Boot }) ||
		made.Scheduling != nil && (made.Scheduling.ProvisioningModel != "" || made.Scheduling.Preemptible) {
		return nil, drover.Errorf(drover.KindInvalid, "the template says name, machineType, a boot disk or provisioningModel, which Drover gives for each instance").
			WithHint("use image, disk and disk_type of the cloud, and let Drover choose types and markets")
	}
	return made, nil
}

// mergedItems are both; of a key in both, the second's.
func mergedItems(first *compute.Metadata, second []*compute.MetadataItems) *compute.Metadata {
	all := &compute.Metadata{Items: second}
	if first == nil {
		return all
	}
	for _, i := range first.Items {
		if i != nil && !slices.ContainsFunc(second, func(own *compute.MetadataItems) bool { return own.Key == i.Key }) {
			all.Items = append(all.Items, i)
		}
	}
	return all
}

// initFolder is where an instance notes which scripts have run.
const initFolder = "/var/lib/drover-init"

// metadata is what an instance reads at its boot: who may log in, and what runs. Nobody else logs in by it: neither the project's keys nor its
// members.
func (c *cloud) metadata(r driver.CreateRequest) ([]*compute.MetadataItems, error) {
	all := []*compute.MetadataItems{
		item("block-project-ssh-keys", "TRUE"), item("enable-oslogin", "FALSE"), item("enable-guest-attributes", "TRUE"),
	}
	if r.PublicKey != "" {
		all = append(all, item("ssh-keys", c.config.User+":"+strings.TrimSpace(r.PublicKey)))
	}
	if c.config.Init == initCloud {
		all = append(all, item("user-data", kit.UserData(r).Reveal()))
	} else if scripts := kit.Scripts(r); len(scripts) > 0 {
		all = append(all, item("startup-script", startup(initFolder, scripts)))
	}
	for _, i := range all {
		if len(*i.Value) > maxUserData {
			return nil, drover.Errorf(drover.KindInvalid, "%s has %d bytes, and Google takes %d", i.Key, len(*i.Value), maxUserData)
		}
	}
	return all, nil
}

func item(key, value string) *compute.MetadataItems {
	return &compute.MetadataItems{Key: key, Value: &value}
}

// startup is a startup script, which Google runs at every boot, that runs each of these at the first alone. They come in base 64, since they
// may be of any language and hold anything.
func startup(folder string, scripts []drover.Secret) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
dir=%s
mkdir -p "$dir" && chmod 700 "$dir" || exit 1
once() {
	[ -e "$dir/$1.done" ] && return
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	: >"$dir/$1.done"
	rm -f "$dir/$1"
}
`, folder)
	for i, s := range scripts {
		fmt.Fprintf(&b, "once %d <<'END'\n%s\nEND\n", i, base64.StdEncoding.EncodeToString([]byte(s.Reveal())))
	}
	return b.String()
}
