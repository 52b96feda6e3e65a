package control

import (
	"context"
	"slices"
	"sync"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// growable is a cloud whose volumes can be grown. Growing does nothing: this host's disk is large enough.
type growable struct {
	driver.Cloud

	mu    sync.Mutex
	sizes []drover.Bytes // requested; guarded by mu
}

func (g *growable) Capabilities() driver.Capabilities {
	can := g.Cloud.Capabilities()
	can.GrowDisk = true
	return can
}

func (g *growable) GrowDisk(_ context.Context, _ string, size drover.Bytes) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sizes = append(g.sizes, size)
	return nil
}

// covers K14
func TestAVolumeGrowsForTheNextJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cloud := &growable{Cloud: f.cfg.Clouds[0].Driver}
	f.cfg.Clouds[0].Driver, f.cfg.Settings.Clouds[0].Disk = cloud, drover.MiB
	f.cfg.Clouds[0].Offer = func(o drover.Offering) (drover.Offering, string) {
		o.Type.Resources.Disk = 0
		return o, ""
	}
	c, stop := f.begin()
	f.submit(c, "echo a")
	f.until(c, "the first job is final", f.allFinal)
	first := theOne(t, c)
	must(c.Submit(t.Context(), drover.Submission{Batch: drover.Batch{Name: "next", Jobs: []drover.JobSpec{{
		Name: "b", Command: []string{"echo", "b"}, Priority: 1, Attempts: 1, Spot: drover.SpotPrefer,
		Resources: drover.Resources{CPU: 500, Memory: 32 * drover.MiB, Disk: 2 * drover.MiB},
	}}}}))(t)
	f.until(c, "the next job is final", f.allFinal)
	in := theOne(t, c)
	if in.ID != first.ID || first.Resources.Disk != drover.MiB || in.Resources.Disk != drover.GiB || in.Grow != 0 || in.GrowFailed != nil || !slices.Equal(cloud.sizes, []drover.Bytes{drover.GiB}) {
		t.Errorf("%+v became %+v after requests for %v", first, in, cloud.sizes)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// covers K14
func TestAVolumeThatCannotBeGrown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ask := func() *drover.Error {
		c := must(New(t.Context(), f.cfg))(t)
		return transient(c.growDisk(t.Context(), engine.GrowDisk{Instance: 1, Name: "a", Cloud: "here", ProviderID: "a", Size: drover.GiB}))
	}
	if err := ask(); err == nil || err.Kind != drover.KindUnsupported {
		t.Errorf("a cloud that cannot grow volumes returns %v", err)
	}
	f.cfg.Clouds[0].Driver = &growable{Cloud: f.cfg.Clouds[0].Driver}
	if err := ask(); err == nil || err.Kind != drover.KindTransient {
		t.Errorf("for an instance that is not connected it returns %v", err)
	}
}
