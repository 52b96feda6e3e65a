package drivertest_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/middleware"
)

// harness opens an in-memory account with a flaw.
func harness(patience time.Duration, flaw func(driver.Cloud) driver.Cloud) drivertest.Harness {
	a := &account{instances: map[string]*fake{}}
	return drivertest.Harness{
		Open: func(_ context.Context, fleet string) (driver.Cloud, error) {
			return flaw(a.open(fleet)), nil
		},
		Fleet:    "suite",
		Patience: patience,
		Many:     3,
	}
}

// covers C8
func TestCorrectCloudPasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud { return c }))
}

func TestCloudWithSharedResourcesPasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
		return sharing{c, &[]driver.Leftover{fleetKey("k-1")}}
	}))
}

func TestCloudWithLateListsPasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
		return middleware.Inject(c, middleware.Faults{Unlisted: 40 * time.Millisecond, Lingers: 40 * time.Millisecond})
	}))
}

func TestCloudThatDescribesPasses(t *testing.T) {
	t.Run("lists without lag", func(t *testing.T) {
		drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, -1, looking(c)}
		}))
	})
	t.Run("lists and descriptions with the declared lag", func(t *testing.T) {
		drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
			late := middleware.Inject(c, middleware.Faults{Unlisted: 40 * time.Millisecond, Lingers: 40 * time.Millisecond})
			return describable{altered{Cloud: late}, time.Second, looking(late)}
		}))
	})
}

func TestErrorContainsTheList(t *testing.T) {
	err := find(t, "repeating a create request").Run(t.Context(), harness(time.Second, injecting(middleware.MethodCreate, middleware.Trouble{Double: 1})))
	if err == nil || !strings.Contains(err.Error(), "waiting until the list filtered by tags map[") || strings.Count(err.Error(), "suite/check-") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestCheckThatFailsAfterReopeningCleansUp(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		cloud      func(account driver.Cloud, opened int) (driver.Cloud, error)
	}{
		{"the cloud cannot be opened again", "open again: down", func(c driver.Cloud, opened int) (driver.Cloud, error) {
			if opened > 1 {
				return nil, errors.New("down")
			}
			return c, nil
		}},
		{"no list contains the instance", "listed none", func(c driver.Cloud, _ int) (driver.Cloud, error) {
			return altered{Cloud: c, list: func(context.Context, map[string]string) ([]driver.Instance, error) { return nil, nil }}, nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, opened := &account{instances: map[string]*fake{}}, 0
			h := drivertest.Harness{Fleet: "suite", Patience: 100 * time.Millisecond, Open: func(_ context.Context, fleet string) (driver.Cloud, error) {
				opened++
				c, err := tt.cloud(a.open(fleet), opened)
				if err != nil {
					return nil, err
				}
				return middleware.ForFleet(c, fleet), nil
			}}
			if err := find(t, "closing a cloud").Run(t.Context(), h); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if len(a.instances) > 0 {
				t.Errorf("left: %v", a.instances)
			}
		})
	}
}

// covers C2 C6 C7 C8 L27 L30
func TestEveryCheckCanFail(t *testing.T) {
	flaws := []struct {
		check, flaw string
		make        func(driver.Cloud) driver.Cloud
	}{
		{"capabilities are complete", "does not declare the effect of a power-off", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, capabilities: &driver.Capabilities{HostKeys: driver.HostKeysPlanted}}
		}},
		{"capabilities are complete", "declares an unknown source of notices", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.Notices = "carrier pigeon"
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "claims to stop and start instances, but is no Starter", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.StopStart = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "claims that stopping saves money, but cannot stop", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.StopSaves = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "claims to describe, but is no Describer", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.Describe = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "gives all nodes the same name", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.NodeID = "aws:///{zone}"
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"the description of an instance by its id", "finds no instance", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(_ context.Context, id string) (driver.Instance, error) {
				return driver.Instance{}, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
			}}
		}},
		{"the description of an instance by its id", "finds a new instance later than declared", func(c driver.Cloud) driver.Cloud {
			var calls atomic.Int32
			return describable{altered{Cloud: c}, -1, func(ctx context.Context, id string) (driver.Instance, error) {
				if calls.Add(1) == 1 {
					return driver.Instance{}, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
				}
				return looking(c)(ctx, id)
			}}
		}},
		{"the description of an instance by its id", "omits the tags", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Tags = nil
				return in, err
			}}
		}},
		{"the description of an instance by its id", "omits the address", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Addresses = driver.Addresses{}
				return in, err
			}}
		}},
		{"looking up an instance", "describes an instance that is gone", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(_ context.Context, id string) (driver.Instance, error) {
				return driver.Instance{ID: id, State: driver.Stopped}, nil
			}}
		}},
		{"looking up an instance", "forgets an instance later than declared", func(c driver.Cloud) driver.Cloud {
			var calls atomic.Int32
			return describable{altered{Cloud: c}, -1, func(ctx context.Context, id string) (driver.Instance, error) {
				if calls.Add(1) == 1 {
					return driver.Instance{ID: id, State: driver.Stopped}, nil
				}
				return looking(c)(ctx, id)
			}}
		}},
		{"looking up an instance", "reports an end before the creation", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				if err != nil {
					in.Ended = drover.TimeOf(time.Now().Add(-time.Hour))
				}
				return in, err
			}}
		}},
		{"the description of an instance by its id", "reports the end of a new instance", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Ended = drover.TimeOf(time.Now())
				return in, err
			}}
		}},
		{"looking up an instance", "reports a transient error for an unknown instance", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				if !strings.HasPrefix(id, "suite/") {
					return driver.Instance{}, drover.Errorf(drover.KindTransient, "there is no instance %s", id)
				}
				return looking(c)(ctx, id)
			}}
		}},
		{"offerings are complete", "does not sort", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, offerings: func(all []drover.Offering) []drover.Offering { slices.Reverse(all); return all }}
		}},
		{"offerings are complete", "lists an offering twice", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, offerings: func(all []drover.Offering) []drover.Offering { return append(all, all[len(all)-1]) }}
		}},
		{"offerings are complete", "omits a size", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, offerings: func(all []drover.Offering) []drover.Offering {
				all[0].Type.Resources.Memory = 0
				return all
			}}
		}},
		{"create returns", "reports a candidate that was not requested", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				taken.Zone = "elsewhere"
				return in, taken, err
			}}
		}},
		{"create returns", "returns no id", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				in.ID = ""
				return in, taken, err
			}}
		}},
		{"an instance has its tags", "creates instances without their tags", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				tags := r.Tags
				r.Tags = nil
				in, taken, err := c.Create(ctx, r)
				in.Tags = tags
				return in, taken, err
			}}
		}},
		{"repeating a create request", "makes another instance", injecting(middleware.MethodCreate, middleware.Trouble{Double: 1})},
		{"concurrent create requests", "sometimes makes another instance", injecting(middleware.MethodCreate, middleware.Trouble{Double: 0.5})},
		{"a request for an impossible type", "creates an instance anyway", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				r.Candidates[0].ProviderType = "a"
				return c.Create(ctx, r)
			}}
		}},
		{"a request for an impossible type", "refuses it with an unclassified error", injecting(middleware.MethodCreate, middleware.Trouble{Fail: 1, Errors: []error{errPlain}})},
		{"a request for an impossible type", "leaves a network interface behind", func(c driver.Cloud) driver.Cloud {
			return littered{c, driver.Leftover{Kind: "interface", ID: "i-1"}}
		}},
		{"destroy removes", "leaves a disk behind", func(c driver.Cloud) driver.Cloud { return littered{c, driver.Leftover{Kind: "disk", ID: "d-1"}} }},
		{"a request without candidates", "calls it transient", injecting(middleware.MethodCreate, middleware.Trouble{Fail: 1})},
		{"a list filtered by tags", "lists only the first page", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				all, err := c.List(ctx, tags)
				return all[:min(1, len(all))], err
			}}
		}},
		{"setting tags", "only adds", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, setTags: func(ctx context.Context, id string, tags map[string]string) error {
				tags[driver.TagPool] = "old"
				return c.SetTags(ctx, id, tags)
			}}
		}},
		{"an instance that is gone", "accepts the tags", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, setTags: func(context.Context, string, map[string]string) error { return nil }}
		}},
		{"destroy removes", "does nothing", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, destroy: func(context.Context, string) error { return nil }}
		}},
		{"destroy removes", "fails if the instance is gone", func(c driver.Cloud) driver.Cloud {
			gone := map[string]bool{}
			return altered{Cloud: c, destroy: func(ctx context.Context, id string) error {
				if gone[id] {
					return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
				}
				gone[id] = true
				return c.Destroy(ctx, id)
			}}
		}},
		{"a fleet leaves the instances", "destroys every fleet's instances", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, destroy: func(ctx context.Context, _ string) error {
				all, err := c.List(ctx, nil)
				for _, in := range all {
					err = errors.Join(err, c.Destroy(ctx, in.ID))
				}
				return err
			}}
		}},
		{"closing a cloud keeps", "destroys its instances on closing", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, close: func() error {
				all, err := c.List(context.Background(), nil)
				for _, in := range all {
					err = errors.Join(err, c.Destroy(context.Background(), in.ID))
				}
				return err
			}}
		}},
		{"closing a cloud keeps", "reports other ids to each controller", func() func(c driver.Cloud) driver.Cloud {
			var opened atomic.Int32
			return func(c driver.Cloud) driver.Cloud {
				suffix := fmt.Sprintf("#%d", opened.Add(1))
				return altered{Cloud: c,
					create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
						in, taken, err := c.Create(ctx, r)
						in.ID += suffix
						return in, taken, err
					},
					list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
						all, err := c.List(ctx, tags)
						for i := range all {
							all[i].ID += suffix
						}
						return all, err
					},
					destroy: func(ctx context.Context, id string) error {
						id, _, _ = strings.Cut(id, "#")
						return c.Destroy(ctx, id)
					},
				}
			}
		}()},
		{"concurrent calls", "always returns the first instance", func(c driver.Cloud) driver.Cloud {
			var first atomic.Pointer[driver.Instance]
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				first.CompareAndSwap(nil, &in)
				return *first.Load(), taken, err
			}}
		}},
		{"a list of many", "lists only the first page", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				all, err := c.List(ctx, tags)
				return all[:min(4, len(all))], err // each is listed twice
			}}
		}},
		{"a stopped instance", "destroys the instance instead of stopping it", func(c driver.Cloud) driver.Cloud {
			return stoppable{altered{Cloud: c}, func(id string) { c.Destroy(context.Background(), id) }}
		}},
		{"growing a volume", "grows the volume of an instance that is gone", func(c driver.Cloud) driver.Cloud {
			return growable{altered{Cloud: c}, func(string) error { return nil }}
		}},
		{"growing a volume", "fails if the volume has the size already", func(c driver.Cloud) driver.Cloud {
			grown := map[string]bool{}
			return growable{altered{Cloud: c}, func(id string) error {
				if grown[id] {
					return drover.Errorf(drover.KindInvalid, "the volume already has that size")
				}
				grown[id] = true
				return nil
			}}
		}},
		{"past prices", "lists the oldest first", func(c driver.Cloud) driver.Cloud {
			return remembering{c, []driver.PricePoint{{From: 1, Price: 2}, {From: 2, Price: 1}}}
		}},
		{"past prices", "lists unchanged prices", func(c driver.Cloud) driver.Cloud {
			return remembering{c, []driver.PricePoint{{From: 2, Price: 1}, {From: 1, Price: 1}}}
		}},
		{"past prices", "lists none", func(c driver.Cloud) driver.Cloud { return remembering{c, nil} }},
		{"looking up a nonexistent image", "finds some image", func(c driver.Cloud) driver.Cloud {
			return finding{c, func() ([]driver.Image, error) { return []driver.Image{{ID: "i-1"}}, nil }}
		}},
		{"looking up a nonexistent image", "returns an error", func(c driver.Cloud) driver.Cloud {
			return finding{c, func() ([]driver.Image, error) { return nil, drover.Errorf(drover.KindNotFound, "no such image") }}
		}},
		{"shared resources", "omits the fleet's tag", func(c driver.Cloud) driver.Cloud {
			return sharing{c, &[]driver.Leftover{{Kind: "key", ID: "k-1", Shared: true}}}
		}},
		{"shared resources", "makes others for each controller", func() func(driver.Cloud) driver.Cloud {
			keys := &[]driver.Leftover{}
			return func(c driver.Cloud) driver.Cloud {
				*keys = append(*keys, fleetKey(rand.Text()))
				return sharing{c, keys}
			}
		}()},
		{"shared resources", "never removes them", func(c driver.Cloud) driver.Cloud { return littered{c, fleetKey("k-1")} }},
		{"the init scripts", "ignores the user's script", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				r.UserInit = drover.Secret{}
				return c.Create(ctx, r)
			}}
		}},
		{"no call outlives", "ignores the context", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				return c.List(context.WithoutCancel(ctx), tags)
			}}
		}},
		{"no call outlives", "hangs", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, setTags: func(context.Context, string, map[string]string) error { select {} }}
		}},
		{"the installed key", "plants another host key", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				r.HostKey = drover.NewSecret(otherKey(t))
				return c.Create(ctx, r)
			}}
		}},
		{"the installed key", "omits the address", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				all, err := c.List(ctx, tags)
				for i := range all {
					all[i].Addresses = driver.Addresses{}
				}
				return all, err
			}}
		}},
		{"a wrong host key", "confirms any key", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, verify: func() error { return nil }}
		}},
	}
	failing := map[string]bool{}
	for _, f := range flaws {
		check := find(t, f.check)
		failing[check.Name] = true
		t.Run(check.Name+", on a cloud that "+f.flaw, func(t *testing.T) {
			err := check.Run(t.Context(), harness(50*time.Millisecond, f.make))
			if err == nil || errors.Is(err, drivertest.ErrSkipped) {
				t.Errorf("the check passes: %v", err)
			}
		})
	}
	t.Run("any other key is rejected, on a cloud that accepts any key", func(t *testing.T) {
		check := find(t, "any other key")
		failing[check.Name] = true
		if err := check.Run(t.Context(), harness(time.Second, withOpenDoor)); err == nil {
			t.Error("the check passes")
		}
	})
	t.Run("this test covers every check", func(t *testing.T) {
		for _, c := range drivertest.Checks() {
			if !failing[c.Name] {
				t.Errorf("no flaw fails the check %q", c.Name)
			}
		}
	})
}

func TestSkip(t *testing.T) {
	t.Run("without logins, only the checks that log in are skipped", func(t *testing.T) {
		h := harness(time.Second, func(c driver.Cloud) driver.Cloud { return c })
		h.NoLogin = true
		if err := find(t, "the installed key").Run(t.Context(), h); !errors.Is(err, drivertest.ErrSkipped) {
			t.Errorf("got %v", err)
		}
		if err := find(t, "create returns").Run(t.Context(), h); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestCheckThatCannotCleanUpIsNotSkipped(t *testing.T) {
	h := harness(100*time.Millisecond, injecting(middleware.MethodList, middleware.Trouble{Fail: 1}))
	h.NoLogin = true
	if err := find(t, "the installed key").Run(t.Context(), h); err == nil || errors.Is(err, drivertest.ErrSkipped) {
		t.Errorf("got %v", err)
	}
}

func TestCheckDestroysWhateverItCan(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		kind       drover.ErrorKind
		failures   int // of the calls for the first instance
		left       int
	}{
		{"a destroy request that fails for a passing reason is repeated", "", drover.KindRateLimit, 1, 0},
		{"a destroy request that keeps failing is reported, and the other instances are destroyed", "destroy suite/check-", drover.KindInvalid, 100, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, first, failures := &account{instances: map[string]*fake{}}, "", tt.failures
			h := drivertest.Harness{Fleet: "suite", Patience: 10 * time.Second, Open: func(_ context.Context, fleet string) (driver.Cloud, error) {
				c := a.open(fleet)
				return altered{Cloud: c, destroy: func(ctx context.Context, id string) error {
					if first = cmp.Or(first, id); id == first && failures > 0 {
						failures--
						return drover.Errorf(tt.kind, "not now")
					}
					return c.Destroy(ctx, id)
				}}, nil
			}}
			err := find(t, "a list filtered by tags").Run(t.Context(), h)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if len(a.instances) != tt.left {
				t.Errorf("left: %v", a.instances)
			}
		})
	}
}

// find returns the check whose name begins with the prefix.
func find(t *testing.T, prefix string) drivertest.Check {
	t.Helper()
	i := slices.IndexFunc(drivertest.Checks(), func(c drivertest.Check) bool { return strings.HasPrefix(c.Name, prefix) })
	if i < 0 {
		t.Fatalf("there is no check %q", prefix)
	}
	return drivertest.Checks()[i]
}

// injecting injects faults into one kind of call.
func injecting(call middleware.Method, of middleware.Trouble) func(driver.Cloud) driver.Cloud {
	return func(c driver.Cloud) driver.Cloud {
		return middleware.Inject(c, middleware.Faults{Seed: 1, Calls: map[middleware.Method]middleware.Trouble{call: of}})
	}
}
