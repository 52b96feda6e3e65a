package gce

import (
	"testing"

	"drover"
	"drover/driver/drivertest"
)

// covers K14
func TestGrowDisk(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, requestFor("one"))
	grow := func(id string, size drover.Bytes) drover.ErrorKind {
		return drover.KindOf(c.GrowDisk(t.Context(), id, size))
	}
	t.Run("grows the boot disk in whole GiB", func(t *testing.T) {
		if kind := grow(in.ID, 400*drover.GiB+1); kind != "" || f.instances[in.ID].grown != 401 {
			t.Errorf("%q, %d GiB", kind, f.instances[in.ID].grown)
		}
	})
	t.Run("leaves a disk that is large enough alone", func(t *testing.T) {
		if kind := grow(in.ID, 30*drover.GiB); kind != "" || f.calls["compute.disks.resize"] != 1 {
			t.Errorf("%q, after %v", kind, f.calls)
		}
	})
	t.Run("finds no disk of a missing instance", func(t *testing.T) {
		drivertest.Must(t, c.Destroy(t.Context(), in.ID))
		delete(f.instances, in.ID)
		for _, id := range []string{in.ID, "us-central1-a/nobody", "nobody"} {
			if kind := grow(id, 600*drover.GiB); kind != drover.KindNotFound {
				t.Errorf("%s: %q", id, kind)
			}
		}
	})
}
