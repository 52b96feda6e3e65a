package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/driver/external"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/externalgrpc"
	"drover/internal/kubenodes"
	"drover/internal/kubetest"
	"drover/internal/store"
)

// covers S8
func TestAClusterIsLeftAloneUntilTheFirstDecision(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "drover.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := control.New(t.Context(), control.Config{Fleet: "lab", Store: s, Trust: true, Spool: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cluster := kubetest.NewCluster(t)
	api, err := kubenodes.Open(cluster.Kubeconfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	token := kubetest.Secret{Meta: kubetest.Meta{Name: "bootstrap-token-abcdef", Labels: map[string]string{"drover/fleet": "lab"}}}
	if err := cluster.API().Do(t.Context(), "POST", "/api/v1/namespaces/kube-system/secrets", token, nil); err != nil {
		t.Fatal(err)
	}
	tokens := func() int {
		var all kubetest.List[kubetest.Secret]
		if err := cluster.API().Do(t.Context(), "GET", "/api/v1/namespaces/kube-system/secrets", nil, &all); err != nil {
			t.Fatal(err)
		}
		return len(all.Items)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	authority := kubetest.NewAuthority(t)
	cert, key := authority.Issue("server")
	k := &kubernetes{
		listener: listener, server: externalgrpc.New(c, nil, false), files: externalgrpc.Files{Cert: cert, Key: key, ClientCA: authority.File},
		keeper: &kubenodes.Keeper{Fleet: c, Cluster: api, Name: "lab", Log: slog.New(slog.DiscardHandler)},
	}

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	running.Go(func() {
		k.run(ctx, &daemon{Options: Options{Log: slog.New(slog.DiscardHandler)}, fleet: &Fleet{Controller: c}})
	})
	time.Sleep(200 * time.Millisecond)
	if tokens() == 0 {
		t.Error("a token was deleted before its purpose was known")
	}
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(10 * time.Second); tokens() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("an unused token is never deleted")
		}
	}
}

// The start and each reload check what checkDrivers checks.
func TestNodeGroupsAreRefusedInCloudsThatDoNotNameNodes(t *testing.T) {
	a := kubetest.NewAuthority(t)
	cert, key := a.Issue("server")
	for can, refused := range map[string]bool{"": true, `"node_id": "x://{id}"`: false} {
		path := filepath.Join(t.TempDir(), "driver")
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\necho '{\"result\": {"+can+"}}'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse("drover.yaml", fmt.Appendf(nil, `version: 1
clouds: {there: {driver: external, command: [%s]}}
pools: {web: {zones: [a], login: none, kubernetes: {max: 1}}}
kubernetes: {kubeconfig: kubeconfig, tls: {cert: %s, key: %s, client_ca: %s}}
`, path, cert, key, a.File), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		drivers := map[string]Kind{"external": {Open: external.Open, Keys: external.Config{}}}
		clouds, err := OpenClouds(t.Context(), c.Clouds, Opening{Drivers: drivers, Fleet: "lab", Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer CloseClouds(clouds)
		if err := checkDrivers(c, clouds); (err != nil) != refused || refused && !strings.Contains(err.Error(), "does not report the Kubernetes provider IDs") {
			t.Errorf("with %q: %v", can, err)
		}
	}
}

// A controller that starts after the last node group was removed still drains its nodes.
// covers S13
func TestAClusterIsServedWithoutNodeGroups(t *testing.T) {
	a := kubetest.NewAuthority(t)
	cert, key := a.Issue("server")
	c, err := config.Parse("drover.yaml", fmt.Appendf(nil, `version: 1
clouds: {here: {driver: local}}
kubernetes: {listen: "127.0.0.1:0", kubeconfig: %s, tls: {cert: %s, key: %s, client_ca: %s}}
`, kubetest.NewCluster(t).Kubeconfig(t.TempDir()), cert, key, a.File), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{config: c, fleet: &Fleet{}}
	k, err := d.openKubernetes()
	if err != nil || k == nil {
		t.Fatalf("the cluster is not served: %v", err)
	}
	k.listener.Close()
	if !Settings(c, RunLimits{}).Nodes {
		t.Error("the engine does not wait until nodes are drained")
	}
}
