package control

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/wire"
)

// pooled returns the Create of an instance of a pool.
func pooled(pool string) engine.Create {
	offering := drover.Offering{Cloud: "here", Zone: "a", Type: drover.InstanceType{Name: "small", ProviderType: "small"}, Market: drover.OnDemand}
	return engine.Create{Name: "test-1", Cloud: "here", Candidates: []drover.Offering{offering}, Pool: pool, Template: "t1"}
}

// covers P8
func TestAPoolsInstanceCarriesWhatItsAdoptionNeeds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Setup.Orders = wire.Orders{Orphan: time.Hour}
	f.cfg.Setup.Pools = map[string]Pool{"web": {Images: map[drover.Arch]string{"": "debian"}, Init: "#!/bin/sh\necho {pool}\n"}, "lent": {Orphan: time.Minute, Probe: "test -e /lent"}}
	c := must(New(t.Context(), f.cfg))(t)
	cl := must(c.cloud("here"))(t)

	t.Run("its pool and template are written to its tags and read from them", func(t *testing.T) {
		r := must(c.createRequest(cl, pooled("web")))(t)
		if r.Tags[driver.TagPool] != "web" || r.Tags[driver.TagMade] != "t1" {
			t.Errorf("the tags are %v", r.Tags)
		}
		if s := sighting(driver.Instance{Tags: r.Tags}); s.Pool != "web" || s.Template != "t1" {
			t.Errorf("the sighting is %+v", s)
		}
		if r.Images[""] != "debian" {
			t.Errorf("its images are %v", r.Images)
		}
		if !strings.Contains(r.PoolInit.Reveal(), "{pool}") {
			t.Errorf("the pool's init is %q", r.PoolInit.Reveal())
		}
	})

	t.Run("powers itself off only if its pool says so", func(t *testing.T) {
		for pool, want := range map[string]bool{"web": false, "lent": true, "": true, "not configured": true} {
			if got := c.initCommand(pool).Reveal() != ""; got != want {
				t.Errorf("pool %q: has a dead-man switch: %v, want %v", pool, got, want)
			}
		}
		tags := map[string]string{driver.TagFleet: "test", driver.TagName: "test-1", driver.TagPool: "lent"}
		cl.replace(map[string]driver.Instance{"i-1": {ID: "i-1", Tags: tags}})
		if o := (&link{c: c, cloud: "here", provider: "i-1"}).orders(); o.Orphan != time.Minute {
			t.Errorf("its runner's orphan timeout is %v", o.Orphan)
		}
	})

	t.Run("its boot probe is its pool's or the default", func(t *testing.T) {
		for pool, want := range map[string]string{"web": "true", "lent": "test -e /lent", "": "true", "not configured": "true"} {
			if got := c.current().probe(pool); got != want {
				t.Errorf("pool %q: %q, want %q", pool, got, want)
			}
		}
	})

	t.Run("an instance for jobs carries neither", func(t *testing.T) {
		r := must(c.createRequest(cl, pooled("")))(t)
		if _, has := r.Tags[driver.TagPool]; has || r.PoolInit.Reveal() != "" {
			t.Errorf("the request is %+v", r)
		}
	})
}

// covers P4
func TestAPoolsHooksRunBesidesTheFleets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var log strings.Builder // a text handler writes one line at a time
	f.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.cfg.Hooks = map[drover.Hook]string{drover.HookReady: script(t, `echo "fleet $DROVER_POOL $DROVER_EVENT"`)}
	f.cfg.Pools = map[string]Pool{"web": {Hooks: map[drover.Hook]string{drover.HookReady: script(t, `echo "pool $DROVER_POOL"`)}}}
	c := must(New(t.Context(), f.cfg))(t)
	fire := engine.Fire{Hook: drover.HookReady, Name: "test-1", Cloud: "here", Zone: "z", Pool: "web"}
	fires(t, c, fire)
	for _, want := range []string{"fleet web " + eventID("test", fire), `"pool web"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	other := fire
	other.Name = "test-2"
	restarted := fire
	restarted.Reason.Since = 1
	if slices.Contains([]string{eventID("test", other), eventID("lab", fire), eventID("test", restarted)}, eventID("test", fire)) {
		t.Error("two events have the same id")
	}
}

func TestAPoolHasItsNumberUnderItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Setup.Settings.Pools = []pool.Spec{
		{Name: "few", Kind: drover.PoolFloor, Count: 0}, {Name: "idle", Kind: drover.PoolSpare, Count: 0}, {Name: "web", Kind: drover.PoolSize, Count: 0},
	}
	c, stop := f.begin()
	defer stop()
	pools := must(c.Pools(t.Context()))(t)
	got := string(must(json.Marshal(pools))(t))
	for _, want := range []string{`"name":"few","kind":"floor","wanted":0,"floor":0,`, `"name":"idle","kind":"spare","wanted":0,"spare":0,`, `"name":"web","kind":"size","wanted":0,"size":0,`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
