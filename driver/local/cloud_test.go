package local_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
	"drover/driver/local"
)

// covers C10
func TestOfferings(t *testing.T) {
	t.Run("by default there is one type with this host's resources", func(t *testing.T) {
		w := newWorld(t, "")
		all, err := w.cloud.Offerings(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("got %v, %v", all, err)
		}
		o := all[0]
		if o.Zone != "local" || o.Type.ProviderType != "local" || o.Market != drover.OnDemand || o.Price != drover.Dollar/100 {
			t.Errorf("got %+v", o)
		}
		if r := o.Type.Resources; r.CPU < 1000 || r.Memory < drover.MiB || r.Disk < drover.MiB || r.Arch == "" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("types, zones, markets and prices are configurable", func(t *testing.T) {
		w := newWorld(t, `zones: [b, a], markets: [on_demand, spot], spot_discount: 70%, types: [
			{name: small, provider_type: t1, vcpus: 0.5, memory: 512Mi, disk: 1Gi, arch: arm64, price: 0.1},
			{name: big, vcpus: "8", memory: 1073741824, disk: 100G, gpus: 2, arch: amd64, price: "$1.5", spot_price: 0.2}]`)
		all, err := w.cloud.Offerings(t.Context())
		drivertest.Must(t, err)
		got := kit.Each(all, func(o drover.Offering) string {
			r := o.Type.Resources
			return strings.TrimSpace(fmt.Sprintln(o.Type.Name, o.Type.ProviderType, o.Zone, o.Market, o.Price, r.CPU, r.Memory, r.Disk, r.GPUs, r.Arch))
		})
		big, small := " 8 1Gi 97656250Ki 2 amd64", " 0.5 512Mi 1Gi 0 arm64"
		want := []string{
			"big big a on_demand $1.5000" + big, "big big a spot $0.2000" + big,
			"big big b on_demand $1.5000" + big, "big big b spot $0.2000" + big,
			"small t1 a on_demand $0.1000" + small, "small t1 a spot $0.0300" + small,
			"small t1 b on_demand $0.1000" + small, "small t1 b spot $0.0300" + small,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// covers C2
func TestOpen(t *testing.T) {
	for _, tt := range []struct{ name, config, fleet, want string }{
		{"a fleet needs an id", "", "", "fleet id"},
		{"a fleet's id must not be a path", "", "../x", "fleet id"},
		{"an unknown key is an error", "tyeps: []", "f", "tyeps"},
		{"a size needs a known unit", "types: [{name: a, memory: 1Gx}]", "f", "1Gx"},
		{"a market must be known", "markets: [lend]", "f", "lend"},
		{"a discount must be at most 100%", "spot_discount: 101%", "f", "101%"},
		{"a fraction must be at most one", "faults: {boot_failures: 2}", "f", "boot_failures"},
		{"a duration must not be negative", "faults: {boot_delay: -1s}", "f", "must not be negative"},
		{"a power-off must end or stop an instance", "faults: {power_off: explodes}", "f", "explodes"},
		{"a notice must not come after the interruption", "faults: {reclaim: {notice: -1s}}", "f", "must not be negative"},
		{"instances must not be announced on another host", "faults: {announce: 192.0.2.1}", "f", "192.0.2.1"},
		{"a type must be configured once", "types: [{name: a}, {name: a}]", "f", "twice"},
		{"a zone must be configured once", "zones: [a, a]", "f", "twice"},
		{"a spot price needs a spot market", "types: [{name: a, spot_price: 0.1}]", "f", "spot is not among the markets"},
		{"a type needs a name", "types: [{vcpus: 1}]", "f", "no name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "")
			w.config = tt.config
			if _, err := local.Open(t.Context(), w.options(tt.fleet)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	t.Run("an instance's node is named after its fleet and its name", func(t *testing.T) {
		w := newWorld(t, "")
		drivertest.Node(t, w.cloud, w.create("one"), "drover://fleet/one")
	})
	t.Run("closing removes only an empty folder", func(t *testing.T) {
		w := newWorld(t, "")
		in := w.create("one")
		fleet := filepath.Join(w.folder, "fleet")
		drivertest.Must(t, w.cloud.Close())
		if got := w.list(); len(got) != 1 || got[0].ID != in.ID {
			t.Errorf("after closing: %v", got)
		}
		drivertest.Must(t, errors.Join(w.cloud.Destroy(t.Context(), in.ID), w.cloud.Close()))
		if _, err := os.Stat(fleet); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the fleet's folder is still there: %v", err)
		}
	})
}

func TestProgram(t *testing.T) {
	t.Run("instances run from a single copy", func(t *testing.T) {
		w := newWorld(t, "")
		w.create("one")
		w.open("fleet").Create(t.Context(), w.request("two"))
		copies, err := filepath.Glob(filepath.Join(w.folder, ".bin", "*"))
		if err != nil || len(copies) != 1 {
			t.Fatalf("copies: %v, %v", copies, err)
		}
		for _, name := range []string{"one", "two"} {
			if got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", w.pidOf(name))); err != nil || got != copies[0] {
				t.Errorf("%s runs from %s, %v", name, got, err)
			}
		}
	})
	t.Run("old copies of other builds are removed", func(t *testing.T) {
		w := newWorld(t, "")
		bin := filepath.Join(w.folder, ".bin")
		old, recent := filepath.Join(bin, "drover-old"), filepath.Join(bin, "drover-recent")
		drivertest.Must(t, errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(old, nil, 0o700), os.WriteFile(recent, nil, 0o700)))
		past := time.Now().Add(-48 * time.Hour)
		drivertest.Must(t, os.Chtimes(old, past, past))
		w.create("one")
		if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the old copy is still there: %v", err)
		}
		if _, err := os.Stat(recent); err != nil {
			t.Error(err)
		}
	})
}

const twoZones = "types: [{name: a, vcpus: 1}, {name: b, vcpus: 2}], zones: [z1, z2], markets: [on_demand, spot], "

// covers C5
func TestFaults(t *testing.T) {
	candidate := func(typ, zone string, m drover.Market) driver.Candidate {
		return driver.Candidate{ProviderType: typ, Zone: zone, Market: m}
	}
	t.Run("candidates out of stock are skipped", func(t *testing.T) {
		w := newWorld(t, twoZones+"faults: {capacity: [{type: a, zone: z1, market: spot}, {zone: z2}]}")
		r := w.request("one")
		r.Candidates = []driver.Candidate{candidate("a", "z1", drover.Spot), candidate("b", "z2", drover.Spot), candidate("a", "z1", drover.OnDemand)}
		in, taken, err := w.cloud.Create(t.Context(), r)
		if err != nil || taken != r.Candidates[2] || in.Market != drover.OnDemand {
			t.Errorf("took %v (%v), %v", taken, in, err)
		}
	})
	t.Run("if nothing is in stock, the error names the last candidate's market", func(t *testing.T) {
		w := newWorld(t, twoZones+"faults: {capacity: [{type: a}]}")
		r := w.request("one")
		r.Candidates = []driver.Candidate{candidate("a", "z1", drover.OnDemand), candidate("a", "z2", drover.Spot)}
		drivertest.RefusedAs(t, w.cloud, r, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot})
		if left := w.list(); len(left) > 0 {
			t.Errorf("listed: %v", left)
		}
	})
	t.Run("a shortage ends", func(t *testing.T) {
		w := newWorld(t, "faults: {capacity: [{for: 20ms}]}")
		until(t, "there is stock again", func() bool {
			_, _, err := w.cloud.Create(t.Context(), w.request("one"))
			return err == nil
		})
	})
	t.Run("the quota counts live instances, each name once", func(t *testing.T) {
		w := newWorld(t, "faults: {quota: 1}")
		in := w.create("one")
		w.create("one")
		if e := drivertest.Refused(t, w.cloud, w.request("two")); e.Kind != drover.KindQuota || e.Scope != drover.ScopeAll {
			t.Errorf("got %+v", e)
		}
		drivertest.Must(t, w.cloud.Destroy(t.Context(), in.ID))
		w.create("two")
	})
	t.Run("a booting instance is pending and refuses connections, then accepts logins", func(t *testing.T) {
		w := newWorld(t, "faults: {boot_delay: 300ms}")
		in := w.create("one")
		if in.State != driver.Pending {
			t.Errorf("state %s at first", in.State)
		}
		if _, err := w.dial(in); err == nil {
			t.Error("it accepted a login at once")
		}
		until(t, "it accepts a login", func() bool {
			client, err := w.dial(in)
			if err == nil {
				client.Close()
			}
			return err == nil
		})
		if got := w.list()[0].State; got != driver.Running {
			t.Errorf("state %s at last", got)
		}
	})
	t.Run("an instance that fails to boot refuses logins", func(t *testing.T) {
		w := newWorld(t, "faults: {boot_failures: 1}")
		in := w.create("one")
		until(t, "it refuses", func() bool { _, err := w.dial(in); return err != nil })
		if got := w.list(); len(got) != 1 {
			t.Errorf("listed: %v", got)
		}
	})
	t.Run("an instance can die suddenly", func(t *testing.T) {
		w := newWorld(t, "faults: {sudden_death: 1ms}")
		w.create("one")
		until(t, "it is gone", func() bool { return len(w.list()) == 0 })
	})
	t.Run("calls fail at the configured rate, and the same calls under the same seed", func(t *testing.T) {
		lots := func(seed string) (fates []bool) {
			w := newWorld(t, "faults: {seed: "+seed+", error_rate: {list: 0.5}}")
			for range 64 {
				_, err := w.cloud.List(t.Context(), nil)
				if err != nil && drover.KindOf(err) != drover.KindTransient {
					t.Errorf("got %v", err)
				}
				fates = append(fates, err != nil)
			}
			return fates
		}
		first, again, other := lots("1"), lots("1"), lots("2")
		if !cmp.Equal(first, again) {
			t.Error("the same seed gave other faults")
		}
		if cmp.Equal(first, other) {
			t.Error("another seed gave the same faults")
		}
		failed := 0
		for _, f := range first {
			if f {
				failed++
			}
		}
		if failed < 16 || failed > 48 {
			t.Errorf("%d of 64 calls failed", failed)
		}
	})
	t.Run("a slow call obeys its deadline", func(t *testing.T) {
		w := newWorld(t, "faults: {latency: {list: 1h}}")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := w.cloud.List(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnnounce(t *testing.T) {
	t.Run("instances report the announced host but do not listen there", func(t *testing.T) {
		w := newWorld(t, "faults: {announce: 127.0.0.2}")
		in := w.create("one")
		announced := netip.MustParseAddrPort(in.Addresses.Public)
		if announced.Addr() != netip.MustParseAddr("127.0.0.2") || w.list()[0].Addresses != in.Addresses {
			t.Errorf("created at %v, listed at %v", in.Addresses, w.list()[0].Addresses)
		}
		if conn, err := net.Dial("tcp", announced.String()); err == nil {
			conn.Close()
			t.Errorf("the instance listens at the announced address")
		}
		in.Addresses.Private = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), announced.Port()).String()
		if got := run(t, w.login(in), "echo hello"); got != "hello" {
			t.Errorf("got %q", got)
		}
	})
}

func TestLocks(t *testing.T) {
	t.Run("a suspended controller does not block other fleets", func(t *testing.T) {
		w := newWorld(t, "")
		half := filepath.Join(w.folder, "stopped", "half")
		drivertest.Must(t, os.MkdirAll(half, 0o700))
		held, err := os.Open(filepath.Dir(half))
		drivertest.Must(t, err)
		defer held.Close()
		drivertest.Must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if all, err := w.cloud.List(ctx, nil); err != nil || len(all) > 0 {
			t.Errorf("got %v, %v", all, err)
		}
		if _, err := os.Stat(half); err != nil {
			t.Errorf("its unfinished instance is gone: %v", err)
		}
	})
	t.Run("a call that waits for the lock obeys its deadline", func(t *testing.T) {
		w := newWorld(t, "")
		w.create("one")
		held, err := os.Open(filepath.Join(w.folder, "fleet"))
		drivertest.Must(t, err)
		defer held.Close()
		drivertest.Must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, _, err := w.cloud.Create(ctx, w.request("two")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDocumentedListLag(t *testing.T) {
	drivertest.ShowsLag(t, "the local driver", newWorld(t, "").cloud.Capabilities().Lag())
}
