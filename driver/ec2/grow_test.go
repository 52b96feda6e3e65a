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
	t.Run("grows the root volume in whole GiB", func(t *testing.T) {
		if kind := grow(in.ID, 40*drover.GiB+1); kind != "" || f.instances[in.ID].gib != 41 {
			t.Errorf("%q, %d GiB", kind, f.instances[in.ID].gib)
		}
	})
	t.Run("leaves a volume that is large enough alone", func(t *testing.T) {
		if kind := grow(in.ID, 30*drover.GiB); kind != "" || f.calls["ModifyVolume"] != 1 {
			t.Errorf("%q, after %v", kind, f.calls)
		}
	})
	t.Run("growing a volume again too soon is unsupported", func(t *testing.T) {
		if kind := grow(in.ID, 50*drover.GiB); kind != drover.KindUnsupported {
			t.Errorf("%q", kind)
		}
	})
	t.Run("finds no volume of a missing instance", func(t *testing.T) {
		drivertest.Must(t, c.Destroy(t.Context(), in.ID))
		for _, id := range []string{in.ID, "i-nobody"} {
			if kind := grow(id, 60*drover.GiB); kind != drover.KindNotFound {
				t.Errorf("%s: %q", id, kind)
			}
		}
	})
}
