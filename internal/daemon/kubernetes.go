package daemon

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/externalgrpc"
	"drover/internal/kubenodes"
	"drover/internal/logkey"
)

// startupTaint is on a node from its registration until it can be used.
const startupTaint = drover.StartupTaint + "drover=:NoSchedule"

// nodeGroupOf returns the labels and taints of a node group's nodes.
func nodeGroupOf(p config.Pool) *control.NodeGroup {
	g := &control.NodeGroup{Labels: maps.Clone(p.Kubernetes.Labels), Taints: []string{startupTaint}}
	if g.Labels == nil {
		g.Labels = map[string]string{}
	}
	g.Labels[kubenodes.GroupLabel] = p.Name
	for _, t := range p.Kubernetes.Taints {
		g.Taints = append(g.Taints, string(t))
	}
	return g
}

// kubernetes is the part of a daemon that serves a cluster.
type kubernetes struct {
	listener net.Listener
	server   *externalgrpc.Server
	files    externalgrpc.Files
	keeper   *kubenodes.Keeper
}

// openKubernetes listens for the cluster's autoscaler; nil if no cluster is configured.
func (d *daemon) openKubernetes() (*kubernetes, error) {
	k := d.config.Kubernetes
	if k.Kubeconfig == "" {
		return nil, nil
	}
	cluster, err := kubenodes.Open(string(k.Kubeconfig))
	if err != nil {
		return nil, err
	}
	l, err := d.listen(autoscalerAddress, string(k.Listen))
	if err != nil {
		return nil, err
	}
	return &kubernetes{
		listener: l, server: externalgrpc.New(d.fleet.Controller, d.templateLook, k.Options),
		files: externalgrpc.Files{Cert: string(k.TLS.Cert), Key: string(k.TLS.Key), ClientCA: string(k.TLS.ClientCA)},
		keeper: &kubenodes.Keeper{
			Fleet: d.fleet.Controller, Cluster: cluster, Name: d.config.Fleet, Look: d.nodeLook, JoinTimeout: k.JoinTimeout, Log: d.Log,
			Drain: kubenodes.Drain(k.Drain),
		},
	}, nil
}

// group returns a node group as it is configured now; nil if it is not.
func (d *daemon) group(name string) *config.Pool {
	groups := d.inUse.Load().Groups()
	if at := slices.IndexFunc(groups, func(p config.Pool) bool { return p.Name == name }); at >= 0 {
		return &groups[at]
	}
	return nil
}

func (d *daemon) nodeLook(group string) kubenodes.Look {
	p := d.group(group)
	if p == nil {
		return kubenodes.Look{}
	}
	return kubenodes.Look(*nodeGroupOf(*p))
}

// templateLook describes a node group's template node, which has no startup taint: a usable node has none either.
func (d *daemon) templateLook(group string) externalgrpc.Look {
	p := d.group(group)
	if p == nil {
		return externalgrpc.Look{}
	}
	g, reserved := nodeGroupOf(*p), p.Kubernetes.Reserved
	taints := slices.DeleteFunc(g.Taints, func(t string) bool { return strings.HasPrefix(t, drover.StartupTaint) })
	return externalgrpc.Look{Labels: g.Labels, Taints: taints, Reserved: drover.Resources{CPU: reserved.VCPUs, Memory: reserved.Memory, Disk: reserved.Disk}}
}

// run serves the autoscaler and looks after the nodes until ctx ends. It begins after the first decision: before that,
// the groups seem to have no instances, and the tokens of those that boot would be deleted.
func (k *kubernetes) run(ctx context.Context, d *daemon) {
	if err := d.fleet.Controller.Query(ctx, func(*engine.Engine) {}); err != nil {
		k.listener.Close()
		return // the controller has ended
	}
	go func() {
		if err := k.server.Serve(ctx, k.listener, k.files); err != nil {
			d.Log.Error("the server for the autoscaler has stopped", logkey.Error, err)
		}
	}()
	// It ends only with ctx.
	_ = k.keeper.Run(ctx)
}
