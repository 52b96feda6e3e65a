package openstack

import (
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// volumed creates an instance of 30 GiB in a cloud whose instances boot from volumes.
func volumed(t *testing.T, f *fake) (c *cloud, in driver.Instance, root *fakeVolume) {
	t.Helper()
	c = imitate(t, f, "boot_from: volume")
	r := request("one")
	r.Disk = 30 * drover.GiB
	in, _ = drivertest.Create(t, c, r)
	for _, v := range f.volumes {
		root = v
	}
	return c, in, root
}

// covers K14
func TestGrowDisk(t *testing.T) {
	t.Run("grows the boot volume once, in whole GiB", func(t *testing.T) {
		f := newFake()
		c, in, root := volumed(t, f)
		f.attach(in.ID, 10, "false")
		for range 2 {
			drivertest.Must(t, c.GrowDisk(t.Context(), in.ID, 40*drover.GiB+1))
		}
		if root.gib != 41 || f.calls["POST volumes/action"] != 1 {
			t.Errorf("%d GiB, after %v", root.gib, f.calls)
		}
	})
	t.Run("does not repeat a request in progress", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.extendTime = time.Minute
			c, in, root := volumed(t, f)
			for range 2 {
				drivertest.Must(t, c.GrowDisk(t.Context(), in.ID, 40*drover.GiB))
			}
			if root.gib != 30 || root.next != 40 || f.calls["POST volumes/action"] != 1 {
				t.Errorf("%+v, after %v", root, f.calls)
			}
		})
	})
	t.Run("a volume that does not exist yet is a transient error", func(t *testing.T) {
		f := newFake()
		f.buildTime = time.Hour
		c, in, root := volumed(t, f)
		if kind := drover.KindOf(c.GrowDisk(t.Context(), in.ID, 40*drover.GiB)); kind != drover.KindTransient {
			t.Error(kind)
		}
		delete(f.volumes, root.id)
		if kind := drover.KindOf(c.GrowDisk(t.Context(), in.ID, 40*drover.GiB)); kind != drover.KindTransient {
			t.Error(kind)
		}
	})
	t.Run("a volume that cannot grow is refused", func(t *testing.T) {
		for name, spoil := range map[string]func(*fake, *fakeVolume){
			"an old Cinder":           func(f *fake, _ *fakeVolume) { f.newestVolume = 27 },
			"too large":               func(f *fake, _ *fakeVolume) { f.largest = 35 },
			"failed to extend before": func(_ *fake, v *fakeVolume) { v.wrong = true },
			"two boot volumes":        func(f *fake, v *fakeVolume) { f.attach(v.server, 10, "true") },
			"no boot volume":          func(_ *fake, v *fakeVolume) { v.bootable = "false" },
			"boots from no volume":    func(f *fake, _ *fakeVolume) { clear(f.volumes) },
			"over quota":              func(f *fake, _ *fakeVolume) { f.gigabytes = 35 },
		} {
			f := newFake()
			c, in, root := volumed(t, f)
			spoil(f, root)
			want := drover.KindUnsupported
			if name == "over quota" {
				want = drover.KindQuota
			}
			if kind := drover.KindOf(c.GrowDisk(t.Context(), in.ID, 40*drover.GiB)); kind != want {
				t.Errorf("%s: %q", name, kind)
			}
		}
	})
	t.Run("finds no volume of a missing or ending instance", func(t *testing.T) {
		f := newFake()
		f.endTime = time.Hour
		c, in, _ := volumed(t, f)
		drivertest.Must(t, c.Destroy(t.Context(), in.ID))
		for _, id := range []string{in.ID, debian} {
			if kind := drover.KindOf(c.GrowDisk(t.Context(), id, 40*drover.GiB)); kind != drover.KindNotFound {
				t.Errorf("%s: %q", id, kind)
			}
		}
	})
	t.Run("disks grow only if instances boot from volumes and grow_volumes is not false", func(t *testing.T) {
		isolate(t, "http://fake")
		for keys, want := range map[string]bool{"": false, "boot_from: volume": true, "boot_from: volume, grow_volumes: false": false} {
			c, err := open(options(t, "fleet", keys, t.TempDir()), newFake())
			drivertest.Must(t, err)
			if _, can := driver.As[driver.DiskGrower](c); can != want || c.Capabilities().GrowDisk != want {
				t.Errorf("%s: %v", keys, can)
			}
		}
	})
}
