package control

import (
	"context"
	"slices"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/engine"
)

// A cloud that fails calls, loses answers, sometimes creates two instances for one call, and has late lists costs time
// and nothing else.
// covers C4
func TestAMisbehavingCloudCostsOnlyTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	right := f.cfg.Clouds[0].Driver
	f.cfg.Clouds[0].Driver = middleware.Inject(right, middleware.Faults{
		Seed: 3, Unlisted: 300 * time.Millisecond, Lingers: 300 * time.Millisecond,
		Calls: map[middleware.Method]middleware.Trouble{
			middleware.MethodCreate:  {Fail: 0.2, Lose: 0.4, Double: 0.4},
			middleware.MethodList:    {Fail: 0.3},
			middleware.MethodDestroy: {Fail: 0.3, Lose: 0.3},
			middleware.MethodSetTags: {Fail: 0.3, Lose: 0.3},
		},
	})
	c, stop := f.begin()
	f.submit(c, "true", "true", "true")
	f.until(c, "all jobs are final", f.allFinal)
	sum := must(f.store.Summary(t.Context(), drover.TimeOf(time.Now())))(t)
	if sum.Succeeded != 3 || sum.Attempts != 3 {
		t.Errorf("%d jobs succeeded in %d attempts, want 3 in 3", sum.Succeeded, sum.Attempts)
	}
	c.CloseFleet(t.Context(), false)
	f.until(c, "the fleet is at rest", (*engine.Engine).AtRest)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if list := must(right.List(t.Context(), nil))(t); len(list) > 0 {
		t.Errorf("the cloud still has %v", list)
	}
}

// twins is a cloud that executed one create call twice.
type twins struct {
	driver.Cloud
	there []driver.Instance
}

func (c *twins) List(context.Context, map[string]string) ([]driver.Instance, error) {
	return slices.Clone(c.there), nil
}

func (c *twins) Destroy(_ context.Context, id string) error {
	c.there = slices.DeleteFunc(c.there, func(in driver.Instance) bool { return in.ID == id })
	return nil
}

// covers D16
func TestEveryInstanceOfANameIsDestroyedWhereItsIDIsNotKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tags := map[string]string{driver.TagFleet: "test", driver.TagName: "x"}
	other := map[string]string{driver.TagFleet: "test", driver.TagName: "y"}
	cloud := &twins{f.cfg.Clouds[0].Driver, []driver.Instance{{ID: "1", Tags: tags}, {ID: "2", Tags: tags}, {ID: "3", Tags: other}}}
	f.cfg.Clouds[0].Driver = cloud
	c := must(New(t.Context(), f.cfg))(t)
	if err := c.destroy(t.Context(), engine.Destroy{Name: "x", Cloud: "here"}); err != nil {
		t.Fatal(err)
	}
	if len(cloud.there) != 1 || cloud.there[0].ID != "3" {
		t.Errorf("the cloud has %+v", cloud.there)
	}
}

// untagged is a cloud whose replies to create calls have no tags.
type untagged struct {
	driver.Cloud
	fails error
	tags  map[string]string // the last set
}

func (c *untagged) Create(_ context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return driver.Instance{ID: "i-1"}, r.Candidates[0], c.fails
}

func (c *untagged) SetTags(_ context.Context, _ string, tags map[string]string) error {
	c.tags = tags
	return nil
}

func TestAHoldBeforeTheFirstListKeepsTheInstancesTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cloud := &untagged{Cloud: f.cfg.Clouds[0].Driver}
	f.cfg.Clouds[0].Driver = cloud
	c := must(New(t.Context(), f.cfg))(t)
	if _, ok := c.create(t.Context(), 1, pooled("")).(engine.Created); !ok {
		t.Fatal("it was not created")
	}
	if err := c.setTags(t.Context(), engine.SetTags{Cloud: "here", ProviderID: "i-1", Idle: drover.IdleHold}); err != nil {
		t.Fatal(err)
	}
	if cloud.tags[driver.TagFleet] != "test" || cloud.tags[driver.TagName] != "test-1" || cloud.tags[driver.TagIdle] != "hold" {
		t.Errorf("its tags are %v", cloud.tags)
	}
}

func TestAFailedCreateNamesTheInstanceOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Clouds[0].Driver = &untagged{Cloud: f.cfg.Clouds[0].Driver, fails: drover.Errorf(drover.KindCapacity, "create instance test-1: a: full; create instance test-1: b: full")}
	c := must(New(t.Context(), f.cfg))(t)
	failed, _ := c.create(t.Context(), 1, pooled("")).(engine.CreateFailed)
	if failed.Err == nil || failed.Err.Kind != drover.KindCapacity || failed.Err.Message != "a: full; b: full" { // the engine says what was being created
		t.Errorf("it failed with %v", failed.Err)
	}
}
