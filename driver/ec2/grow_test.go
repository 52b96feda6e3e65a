package ec2

import (
	"testing"

	"drover"
	"drover/driver/drivertest"
)

// covers K14
func TestGrowDisk(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, request("one"))
	grow := func(id string, size drover.Bytes) drover.ErrorKind {
		return drover.KindOf(c.GrowDisk(t.Context(), id, size))
	}
	t.Run("in whole GiB, the root volume alone", func(t *testing.T) {
		if kind := grow(in.ID, 40*drover.GiB+1); kind != "" || f.machines[in.ID].gib != 41 {
			t.Errorf("%q, %d GiB", kind, f.machines[in.ID].gib)
		}
	})
	t.Run("what is as large is left alone", func(t *testing.T) {
		if kind := grow(in.ID, 30*drover.GiB); kind != "" || f.calls["ModifyVolume"] != 1 {
			t.Errorf("%q, after %v", kind, f.calls)
		}
	})
	t.Run("what EC2 does not do so soon again is not supported", func(t *testing.T) {
		if kind := grow(in.ID, 50*drover.GiB); kind != drover.KindUnsupported {
			t.Errorf("%q", kind)
		}
	})
	t.Run("of what is gone there is no volume", func(t *testing.T) {
		drivertest.Must(t, c.Destroy(t.Context(), in.ID))
		for _, id := range []string{in.ID, "i-nobody"} {
			if kind := grow(id, 60*drover.GiB); kind != drover.KindNotFound {
				t.Errorf("%s: %q", id, kind)
			}
		}
	})
}
