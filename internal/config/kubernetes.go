package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
)

// Kubernetes is how the cluster's autoscaler and the cluster itself are reached, for the pools that are node groups.
type Kubernetes struct {
	Listen       listenAddress `yaml:"listen" doc:"the address that the cluster's autoscaler connects to: HOST:PORT"`
	TLS          MutualTLS     `yaml:"tls" doc:"mutual TLS: both sides present a certificate"`
	Kubeconfig   FilePath      `yaml:"kubeconfig" doc:"the kubeconfig file for the cluster's API server"`
	JoinTimeout  time.Duration `yaml:"join_timeout" doc:"destroy a node that has not joined this long after its creation, and report it as failed"`
	Drain        NodeDrain     `yaml:"drain" doc:"what Drover may evict before it removes a node"`
	Options      bool          `yaml:"options" doc:"true: give the autoscaler options for each group; it then counts nodes that are not ready yet as lost"`
	DefaultGroup string        `yaml:"default_group" doc:"the node group for instances that have no pool tag and are not in the records"`
}

// MutualTLS is the files by which each side authenticates the other.
type MutualTLS struct {
	Cert     FilePath `yaml:"cert" doc:"a file with the certificate to present to the autoscaler"`
	Key      FilePath `yaml:"key" doc:"a file with its private key"`
	ClientCA FilePath `yaml:"client_ca" doc:"a file with the certificates of the authorities that sign clients' certificates"`
}

// NodeDrain is which pods may be evicted.
type NodeDrain struct {
	Timeout      time.Duration `yaml:"timeout" doc:"remove the node after this long, even if pods are still running there; 0: only when it is empty"`
	BarePods     bool          `yaml:"bare_pods" doc:"true: also evict pods that would not be replaced"`
	LocalStorage bool          `yaml:"local_storage" doc:"true: also evict pods with storage on the node"`
	SystemPods   bool          `yaml:"system_pods" doc:"true: also evict kube-system pods that are not replicated"`
}

// NodeGroup makes a pool a node group.
type NodeGroup struct {
	Min      int               `yaml:"min" min:"0" max:"100000" doc:"the minimum that Drover reports to the autoscaler"`
	Max      int               `yaml:"max,required" min:"1" max:"100000" doc:"at most this many nodes"`
	Budget   drover.Money      `yaml:"budget" doc:"the maximum cost of all its nodes in USD per hour; default: no separate limit"`
	Labels   map[string]string `yaml:"labels" doc:"the labels of its nodes"`
	Taints   []Taint           `yaml:"taints" doc:"the taints of its nodes, each as KEY=VALUE:EFFECT"`
	Join     FileText          `yaml:"join" doc:"a script or cloud-init file that joins the cluster at the first boot; Drover fills in {fleet} {pool} {name} {zone} {project} {token} {node_id} {labels} {taints}"`
	Reserved NodeReserved      `yaml:"reserved" doc:"resources of a node that are not available to pods"`
}

// NodeReserved is the part of a node that is reserved for the system.
type NodeReserved struct {
	VCPUs  drover.MilliCPU `yaml:"vcpus" doc:"processors"`
	Memory drover.Bytes    `yaml:"memory"`
	Disk   drover.Bytes    `yaml:"disk"`
}

// Taint keeps pods without a matching toleration off a node.
type Taint string

// Default sets the defaults.
func (k *Kubernetes) Default() {
	*k = Kubernetes{Listen: "127.0.0.1:8086", JoinTimeout: 10 * time.Minute}
}

// Groups returns the pools that are node groups.
func (c *Config) Groups() (groups []Pool) {
	for _, p := range c.Pools {
		if p.Kubernetes != nil {
			groups = append(groups, p)
		}
	}
	return groups
}

// What Kubernetes accepts as a label or taint.
var (
	nodeLabel      = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	nodeLabelValue = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	effects        = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
)

// checkKubernetes checks that Drover can keep its promises about node groups.
func (c *Config) checkKubernetes(f *faults) {
	groups, n := c.Groups(), c.root.find("kubernetes")
	given := n.shape == mapping && n != c.root
	switch {
	case !given && len(groups) > 0:
		f.add(c.root.find("pools", groups[0].Name, "kubernetes"), "the pool is a node group, but no cluster is configured", "write kubernetes: {kubeconfig: FILE, tls: …} at the top level")
	case given: // without a group, it drains the nodes of removed ones
		c.checkCluster(f, n)
	}
	for _, p := range groups {
		if at := c.root.find("pools", p.Name); at.shape == mapping {
			p.checkGroup(f, at)
		}
	}
}

func (c *Config) checkCluster(f *faults, n *node) {
	k := c.Kubernetes
	if k.Kubeconfig == "" {
		f.add(n, "kubeconfig is missing: without it, Drover cannot remove startup taints, notice nodes that never join, or drain nodes", "write kubeconfig: FILE")
	}
	k.TLS.check(f, n.find("tls"), k.Listen)
	if k.JoinTimeout <= c.Instances.BootTimeout/10 || k.JoinTimeout <= 0 {
		f.addf(n.find("join_timeout"), "join_timeout (%v) leaves no time to boot", k.JoinTimeout)
	}
	if g := k.DefaultGroup; g != "" && !slices.ContainsFunc(c.Groups(), func(p Pool) bool { return p.Name == g }) {
		f.addf(n.find("default_group"), "there is no node group %s", quote(g))
	}
}

// check rejects missing or unusable files for mutual TLS.
func (t MutualTLS) check(f *faults, n *node, listen listenAddress) {
	if t.Cert == "" || t.Key == "" || t.ClientCA == "" {
		f.addf(n, "cert, key and client_ca are all needed: without them, anyone who can reach %s could destroy every node", listen)
		return
	}
	if _, err := tls.LoadX509KeyPair(string(t.Cert), string(t.Key)); err != nil {
		f.addf(n.find("cert"), "the certificate and its key cannot be used: %v", err)
	}
	text, err := os.ReadFile(string(t.ClientCA))
	if err != nil {
		f.addf(n.find("client_ca"), "%v", err)
	} else if !x509.NewCertPool().AppendCertsFromPEM(text) {
		f.addf(n.find("client_ca"), "%s contains no certificate", t.ClientCA)
	}
}

// checkGroup rejects settings that a node group cannot have.
func (p Pool) checkGroup(f *faults, n *node) {
	k, g := n.find("kubernetes"), p.Kubernetes
	switch {
	case len(p.Clouds) != 1 || len(p.Zones) != 1:
		f.add(cmp.Or(n.get("zones"), k), "a node group must be in one zone of one cloud", "write zones: [ZONE], and configure one pool per zone")
	case p.Jobs != nil && *p.Jobs:
		f.add(n.find("jobs"), "a node group cannot allow jobs: jobs and pods together would overcommit its instances", "leave it out")
	case len(p.Schedule) > 0:
		f.add(n.find("schedule"), "a node group cannot have a schedule: the cluster's autoscaler sets its size", "leave it out")
	case p.OrphanTimeout != 0:
		f.add(n.find("orphan_timeout"), "a node group cannot have orphan_timeout: with no controller, a node would power off under its pods", "leave it out")
	case p.CloudInit.Text != "" && g.Join.Text != "":
		f.add(n.find("cloud_init"), "cloud_init and join are both given", "put everything in join")
	case g.Max > 0 && g.Max < g.Min:
		f.addf(k.find("max"), "max (%d) is less than min (%d)", g.Max, g.Min)
	}
	for key, value := range g.Labels {
		if !nodeLabel.MatchString(key) || !nodeLabelValue.MatchString(value) {
			f.add(k.find("labels", key), fmt.Sprintf("%s=%s is not a valid Kubernetes label", quote(key), quote(value)), "write KEY: VALUE")
		}
	}
	for i, text := range g.Taints {
		t := drover.ParseTaint(string(text))
		at := k.find("taints", strconv.Itoa(i))
		switch {
		case !nodeLabel.MatchString(t.Key) || !nodeLabelValue.MatchString(t.Value) || !slices.Contains(effects, t.Effect):
			f.add(at, quote(string(text))+" is not a valid taint", "write KEY=VALUE:NoSchedule")
		case strings.HasPrefix(t.Key, drover.StartupTaint):
			f.add(at, "only Drover sets and removes the startup taint", "leave it out")
		case slices.ContainsFunc(g.Taints[:i], func(o Taint) bool {
			other := drover.ParseTaint(string(o))
			return other.Key == t.Key && other.Effect == t.Effect
		}):
			f.add(at, fmt.Sprintf("there is already a taint with key %s and effect %s, and a node cannot have two", quote(t.Key), t.Effect), "leave it out")
		}
	}
}
