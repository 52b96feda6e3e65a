//go:build openstack

package openstack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/middleware"
)

// realm is the real services as their administrator sees them, with the test's project, whose user has only the role
// member.
type realm struct {
	t                        *testing.T
	identity, compute, image *gophercloud.ServiceClient
	project                  string // the project's name, and its member's
	projectID                string
}

// enter signs in as the administrator of the services that testdata/services.sh starts, and creates a project with its
// flavors, image and zone.
func enter(t *testing.T) *realm {
	t.Helper()
	if os.Getenv("OS_AUTH_URL") == "" {
		t.Fatal("run make e2e-openstack, or source an administrator's openrc for services that nobody else uses")
	}
	who, err := findCredentials(Config{})
	r := &realm{t: t, project: "lab"}
	provider, err := openstack.AuthenticatedClient(t.Context(), who.auth)
	r.must(err)
	r.identity, err = openstack.NewIdentityV3(provider, who.endpoints)
	r.must(err)
	r.compute, err = openstack.NewComputeV2(provider, who.endpoints)
	r.must(err)
	r.image, err = openstack.NewImageV2(provider, who.endpoints)
	r.must(err)
	r.makeProject()
	r.makeFlavors()
	r.makeImage()
	r.makeZone()
	return r
}

func (r *realm) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// makeProject creates a project with one member.
func (r *realm) makeProject() {
	ctx := r.t.Context()
	project, err := projects.Create(ctx, r.identity, projects.CreateOpts{Name: r.project, DomainID: "default"}).Extract()
	r.must(err)
	r.projectID = project.ID
	user, err := users.Create(ctx, r.identity, users.CreateOpts{Name: r.project, DomainID: "default", Password: "secret"}).Extract()
	r.must(err)
	page, err := roles.List(r.identity, roles.ListOpts{Name: "member"}).AllPages(ctx)
	r.must(err)
	all, err := roles.ExtractRoles(page)
	r.must(err)
	r.must(roles.Assign(ctx, r.identity, all[0].ID, roles.AssignOpts{UserID: user.ID, ProjectID: project.ID}).ExtractErr())
}

func (r *realm) makeFlavors() {
	for _, f := range []flavors.CreateOpts{
		{Name: "one", ID: "drover-one", VCPUs: 1, RAM: 512, Disk: new(int)}, {Name: "three", ID: "drover-three", VCPUs: 3, RAM: 1024, Disk: new(int)},
		{Name: "no-disk", ID: "drover-no-disk", VCPUs: 1, RAM: 512, Disk: new(int)},
	} {
		if f.Name != "no-disk" {
			*f.Disk = 1
		}
		_, err := flavors.Create(r.t.Context(), r.compute, f).Extract()
		r.must(err)
	}
	_, err := flavors.CreateExtraSpecs(r.t.Context(), r.compute, "drover-three", flavors.ExtraSpecsOpts{"drover:price": "0.3"}).Extract()
	r.must(err)
}

func (r *realm) makeImage() {
	public := images.ImageVisibilityPublic
	made, err := images.Create(r.t.Context(), r.image, images.CreateOpts{
		Name: "debian-12-" + r.project, Visibility: &public, DiskFormat: "raw", ContainerFormat: "bare", Properties: map[string]string{"hw_architecture": "x86_64"},
	}).Extract()
	r.must(err)
	r.must(imagedata.Upload(r.t.Context(), r.image, made.ID, bytes.NewReader([]byte("nothing boots"))).ExtractErr())
}

// makeZone waits for both hosts and puts the small one into its own zone.
func (r *realm) makeZone() {
	ctx := r.t.Context()
	r.eventually("both hosts are up", func() bool {
		page, err := services.List(r.compute, services.ListOpts{Binary: "nova-compute"}).AllPages(ctx)
		r.must(err)
		all, err := services.ExtractServices(page)
		r.must(err)
		all = slices.DeleteFunc(all, func(s services.Service) bool { return s.State != "up" })
		return len(all) == 2
	})
	made, err := aggregates.Create(ctx, r.compute, aggregates.CreateOpts{Name: "small", AvailabilityZone: "small"}).Extract()
	r.must(err)
	r.eventually("the small host is in its zone", func() bool {
		_, err = aggregates.AddHost(ctx, r.compute, made.ID, aggregates.AddHostOpts{Host: "small"}).Extract()
		return err == nil // a host is known once its cell has been scanned
	})
}

func (r *realm) eventually(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// empty waits until no earlier instance is left.
func (r *realm) empty(c driver.Cloud) {
	r.t.Helper()
	r.eventually("nothing is left", func() bool {
		all, err := c.List(r.t.Context(), nil)
		r.must(err)
		return len(all) == 0
	})
}

// quota sets the project's quotas of instances and vCPUs.
func (r *realm) quota(instances, cores int) {
	r.t.Helper()
	_, err := quotasets.Update(r.t.Context(), r.compute, r.projectID, quotasets.UpdateOpts{Instances: &instances, Cores: &cores}).Extract()
	r.must(err)
}

// open opens the project as its member.
func (r *realm) open(fleet, keys string) driver.Cloud {
	r.t.Helper()
	for k, v := range map[string]string{"OS_USERNAME": r.project, "OS_PASSWORD": "secret", "OS_PROJECT_NAME": r.project} {
		r.t.Setenv(k, v)
	}
	c, err := Open(r.t.Context(), options(r.t, fleet, keys, r.t.TempDir()))
	r.must(err)
	return middleware.WithImages(c, map[drover.Arch]string{"": "debian-12-" + r.project})
}

// settled returns the instance once it is no longer pending.
func (r *realm) settled(c driver.Cloud, in driver.Instance) (now driver.Instance) {
	r.t.Helper()
	r.eventually("instance "+in.ID+" is made or has failed", func() bool {
		all, err := c.List(r.t.Context(), map[string]string{driver.TagFleet: "real"})
		r.must(err)
		i := slices.IndexFunc(all, func(other driver.Instance) bool { return other.ID == in.ID })
		if i >= 0 {
			now = all[i]
		}
		return i >= 0 && now.State != driver.Pending
	})
	return now
}

// TestRealServices runs against real, unmodified OpenStack services; only the guests are simulated. See
// testdata/services.sh.
// covers K14
func TestRealServices(t *testing.T) {
	r := enter(t)
	r.quota(20, 20)
	began := time.Now()
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, fleet string) (driver.Cloud, error) {
			return r.open(fleet, "networks: none, zones: [nova]"), nil
		},
		Fleet: "check", Patience: 5 * time.Minute, Many: 12, NoLogin: true, // pages are of five
	})
	t.Logf("the suite took %v", time.Since(began).Round(time.Second))

	c := r.open("real", "networks: none, price_spec: 'drover:price'")
	ask := func(name, flavor, zone string) driver.CreateRequest {
		q := request(name, candidate(flavor, zone))
		q.Candidates[0].Image, q.Tags[driver.TagFleet] = "", "real"
		return q
	}
	made := func(t *testing.T, name, flavor, zone string) driver.Instance {
		t.Helper()
		in, _, err := c.Create(t.Context(), ask(name, flavor, zone))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Destroy(context.Background(), in.ID); err != nil {
				t.Error(err)
			}
		})
		return in
	}
	refused := func(t *testing.T, name, flavor, zone string) *drover.Error {
		t.Helper()
		in, _, err := c.Create(t.Context(), ask(name, flavor, zone))
		if err == nil {
			c.Destroy(t.Context(), in.ID)
			t.Fatal("it was created")
		}
		t.Log(err)
		return drover.AsError(err, drover.KindInternal)
	}
	t.Run("flavors with a disk are offered in both zones, with the extra spec's price if the role may see it", func(t *testing.T) {
		all, err := c.Offerings(t.Context())
		if err != nil || len(all) != 4 {
			t.Fatalf("%v, %+v", err, all)
		}
		for _, o := range all {
			t.Logf("%s in %s: %v, %+v", o.Type.Name, o.Zone, o.Price, o.Type.Resources)
		}
	})
	t.Run("an instance in a full zone is listed as failed and counts against the quota until it is destroyed", func(t *testing.T) {
		r.empty(c)
		r.quota(3, 20)
		before := time.Now()
		first := made(t, "a-1", "one", "small")
		if got := r.settled(c, first); got.State != driver.Running || got.Failed != nil || got.Zone != "small" || got.ProviderType != "one" {
			t.Fatalf("%+v", got)
		}
		t.Logf("running after %v", time.Since(before).Round(time.Millisecond))
		r.settled(c, made(t, "a-2", "one", "small"))
		before = time.Now()
		third := made(t, "a-3", "one", "small")
		got := r.settled(c, third)
		t.Logf("failed after %v: %v", time.Since(before).Round(time.Millisecond), got.Failed)
		if got.Failed == nil || got.Failed.Kind != drover.KindCapacity || got.Failed.Scope != drover.ScopeType {
			t.Fatalf("%+v", got)
		}
		if e := refused(t, "a-4", "one", "nova"); e.Kind != drover.KindQuota || e.Scope != drover.ScopeAll {
			t.Errorf("%+v", e)
		}
		for _, in := range []driver.Instance{third, first} {
			if err := c.Destroy(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
		}
		r.eventually("the small zone has capacity again", func() bool {
			in, _, err := c.Create(t.Context(), ask(fmt.Sprint("a-", time.Now().UnixNano()), "one", "small"))
			if err != nil {
				return false
			}
			now := r.settled(c, in)
			r.must(c.Destroy(t.Context(), in.ID))
			return now.State == driver.Running
		})
	})
	t.Run("a vCPU quota too small for one flavor allows a smaller one", func(t *testing.T) {
		r.empty(c)
		r.quota(20, 2)
		if e := refused(t, "b-1", "three", "nova"); e.Kind != drover.KindQuota || e.Scope != drover.ScopeType {
			t.Errorf("%+v", e)
		}
		r.settled(c, made(t, "b-2", "one", "nova"))
		r.quota(20, 20)
	})
	t.Run("a flavor that fits no host lacks capacity", func(t *testing.T) {
		if got := r.settled(c, made(t, "c-1", "three", "small")); got.Failed == nil || got.Failed.Kind != drover.KindCapacity {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an unknown zone, a flavor without a disk and a missing network are refused", func(t *testing.T) {
		if e := refused(t, "d-1", "one", "moon"); e.Kind != drover.KindUnsupported {
			t.Errorf("%+v", e)
		}
		if e := refused(t, "d-2", "no-disk", "nova"); e.Kind != drover.KindAuthentication && e.Kind != drover.KindUnsupported {
			t.Errorf("%+v", e)
		}
		other := r.open("real", "networks: 4f2ad3f0-5a3c-4b3e-9f0c-2b1d0a9e8c77")
		_, _, err := other.Create(t.Context(), ask("d-3", "one", "nova"))
		t.Log(err)
		if drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("a boot volume grows once, within the project's quota", func(t *testing.T) {
		r.empty(c)
		volumed := r.open("real", "networks: none, boot_from: volume")
		q := ask("e-1", "no-disk", "nova")
		q.Disk = 2 * drover.GiB
		in, _, err := volumed.Create(t.Context(), q)
		r.must(err)
		if now := r.settled(volumed, in); now.State != driver.Running {
			t.Fatalf("%+v", now)
		}
		grower, _ := driver.As[driver.DiskGrower](volumed)
		own, _ := driver.As[*cloud](volumed)
		size := func() int {
			s, err := own.api.getServer(t.Context(), in.ID)
			r.must(err)
			client, err := own.api.volumes(t.Context())
			r.must(err)
			v, err := rootOf(t.Context(), client, *s)
			r.must(err)
			return v.Size
		}
		if before := size(); before != 2 {
			t.Errorf("it has %d GiB", before)
		}
		for range 2 {
			r.must(grower.GrowDisk(t.Context(), in.ID, 2*drover.GiB+1))
		}
		began := time.Now()
		r.eventually("the volume is larger", func() bool { return size() == 3 })
		t.Logf("after %v", time.Since(began).Round(10*time.Millisecond))
		r.must(grower.GrowDisk(t.Context(), in.ID, 3*drover.GiB))
		err = grower.GrowDisk(t.Context(), in.ID, drover.TiB)
		t.Log(err)
		if e := drover.AsError(err, ""); e.Kind != drover.KindQuota || e.Scope != drover.ScopeAll {
			t.Errorf("%+v", e)
		}
		r.must(volumed.Destroy(t.Context(), in.ID))
		r.empty(volumed)
		if kind := drover.KindOf(grower.GrowDisk(t.Context(), in.ID, 4*drover.GiB)); kind != drover.KindNotFound {
			t.Error(kind)
		}
	})
	t.Run("an invalid token is renewed", func(t *testing.T) {
		own, _ := driver.As[*cloud](c)
		signedIn, err := own.api.session(t.Context())
		r.must(err)
		signedIn.compute.ProviderClient.SetToken("gAAAAAB-none")
		if _, err := c.List(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("a wrong password is an authentication error", func(t *testing.T) {
		r.open("real", "") // as the member
		t.Setenv("OS_PASSWORD", "wrong")
		bad, err := Open(t.Context(), options(t, "real", "", t.TempDir()))
		r.must(err)
		if _, err := bad.List(t.Context(), nil); drover.KindOf(err) != drover.KindAuthentication {
			t.Error(err)
		}
	})
}
