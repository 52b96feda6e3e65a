package drivertest_test

import (
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

// harness opens an account in memory, with a flaw.
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
func TestRightCloudPasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud { return c }))
}

func TestACloudThatKeepsWhatIsSharedPasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
		return sharing{c, &[]driver.Leftover{fleetKey("k-1")}}
	}))
}

func TestACloudWhoseListsAreLatePasses(t *testing.T) {
	drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
		return middleware.Inject(c, middleware.Faults{Unlisted: 40 * time.Millisecond, Lingers: 40 * time.Millisecond})
	}))
}

func TestACloudThatDescribesPasses(t *testing.T) {
	t.Run("whose lists are never late", func(t *testing.T) {
		drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, -1, looking(c)}
		}))
	})
	t.Run("whose lists, and answers, are late as it says", func(t *testing.T) {
		drivertest.Run(t, harness(10*time.Second, func(c driver.Cloud) driver.Cloud {
			late := middleware.Inject(c, middleware.Faults{Unlisted: 40 * time.Millisecond, Lingers: 40 * time.Millisecond})
			return describable{altered{Cloud: late}, time.Second, looking(late)}
		}))
	})
}

func TestAnErrorSaysWhatWasListed(t *testing.T) {
	err := find(t, "repeating a create request").Run(t.Context(), harness(time.Second, injecting(middleware.MethodCreate, middleware.Trouble{Double: 1})))
	if err == nil || !strings.Contains(err.Error(), "waiting until the list filtered by tags map[") || strings.Count(err.Error(), "suite/check-") != 2 {
		t.Errorf("got %v", err)
	}
}

// covers C2 C6 C7 C8 L27 L30
func TestEveryCheckCanFail(t *testing.T) {
	flaws := []struct {
		check, flaw string
		make        func(driver.Cloud) driver.Cloud
	}{
		{"capabilities are complete", "says nothing of power-off", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, capabilities: &driver.Capabilities{HostKeys: driver.HostKeysPlanted}}
		}},
		{"capabilities are complete", "puts its notices nowhere that is known", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.Notices = "carrier pigeon"
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "claims to stop and start", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.StopStart = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "saves by stopping what it cannot stop", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.StopSaves = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "claims to describe", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.Describe = true
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"capabilities are complete", "calls all nodes alike", func(c driver.Cloud) driver.Cloud {
			caps := c.Capabilities()
			caps.NodeID = "aws:///{zone}"
			return altered{Cloud: c, capabilities: &caps}
		}},
		{"the description of an instance by its id", "finds none", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(_ context.Context, id string) (driver.Instance, error) {
				return driver.Instance{}, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
			}}
		}},
		{"the description of an instance by its id", "finds it later than it says", func(c driver.Cloud) driver.Cloud {
			var calls atomic.Int32
			return describable{altered{Cloud: c}, -1, func(ctx context.Context, id string) (driver.Instance, error) {
				if calls.Add(1) == 1 {
					return driver.Instance{}, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
				}
				return looking(c)(ctx, id)
			}}
		}},
		{"the description of an instance by its id", "tells no tags", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Tags = nil
				return in, err
			}}
		}},
		{"the description of an instance by its id", "tells no address", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Addresses = driver.Addresses{}
				return in, err
			}}
		}},
		{"looking up an instance", "describes what is gone", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(_ context.Context, id string) (driver.Instance, error) {
				return driver.Instance{ID: id, State: driver.Stopped}, nil
			}}
		}},
		{"looking up an instance", "forgets it later than it says", func(c driver.Cloud) driver.Cloud {
			var calls atomic.Int32
			return describable{altered{Cloud: c}, -1, func(ctx context.Context, id string) (driver.Instance, error) {
				if calls.Add(1) == 1 {
					return driver.Instance{ID: id, State: driver.Stopped}, nil
				}
				return looking(c)(ctx, id)
			}}
		}},
		{"looking up an instance", "has it end before it was made", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				if err != nil {
					in.Ended = drover.TimeOf(time.Now().Add(-time.Hour))
				}
				return in, err
			}}
		}},
		{"the description of an instance by its id", "has it end when it is made", func(c driver.Cloud) driver.Cloud {
			return describable{altered{Cloud: c}, 0, func(ctx context.Context, id string) (driver.Instance, error) {
				in, err := looking(c)(ctx, id)
				in.Ended = drover.TimeOf(time.Now())
				return in, err
			}}
		}},
		{"looking up an instance", "calls what never was a passing trouble", func(c driver.Cloud) driver.Cloud {
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
		{"offerings are complete", "repeats itself", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, offerings: func(all []drover.Offering) []drover.Offering { return append(all, all[len(all)-1]) }}
		}},
		{"offerings are complete", "leaves a size out", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, offerings: func(all []drover.Offering) []drover.Offering {
				all[0].Type.Resources.Memory = 0
				return all
			}}
		}},
		{"create returns", "takes what nobody asked for", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				taken.Zone = "elsewhere"
				return in, taken, err
			}}
		}},
		{"create returns", "answers without an id", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				in.ID = ""
				return in, taken, err
			}}
		}},
		{"an instance has its tags", "tags after creating", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				tags := r.Tags
				r.Tags = nil
				in, taken, err := c.Create(ctx, r)
				in.Tags = tags
				return in, taken, err
			}}
		}},
		{"repeating a create request", "makes another", injecting(middleware.MethodCreate, middleware.Trouble{Double: 1})},
		{"concurrent create requests", "makes another now and then", injecting(middleware.MethodCreate, middleware.Trouble{Double: 0.5})},
		{"a request for an impossible type", "creates it anyway", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				r.Candidates[0].ProviderType = "a"
				return c.Create(ctx, r)
			}}
		}},
		{"a request for an impossible type", "refuses without a class", injecting(middleware.MethodCreate, middleware.Trouble{Fail: 1, Errors: []error{errPlain}})},
		{"a request for an impossible type", "leaves a network interface behind", func(c driver.Cloud) driver.Cloud {
			return littered{c, driver.Leftover{Kind: "interface", ID: "i-1"}}
		}},
		{"destroy removes", "leaves a disk behind", func(c driver.Cloud) driver.Cloud { return littered{c, driver.Leftover{Kind: "disk", ID: "d-1"}} }},
		{"a request without candidates", "calls it passing trouble", injecting(middleware.MethodCreate, middleware.Trouble{Fail: 1})},
		{"a list filtered by tags", "lists the first page", func(c driver.Cloud) driver.Cloud {
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
		{"an instance that is gone", "tags it", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, setTags: func(context.Context, string, map[string]string) error { return nil }}
		}},
		{"destroy removes", "does nothing", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, destroy: func(context.Context, string) error { return nil }}
		}},
		{"destroy removes", "misses what is gone", func(c driver.Cloud) driver.Cloud {
			gone := map[string]bool{}
			return altered{Cloud: c, destroy: func(ctx context.Context, id string) error {
				if gone[id] {
					return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
				}
				gone[id] = true
				return c.Destroy(ctx, id)
			}}
		}},
		{"a fleet leaves the instances", "destroys all there is", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, destroy: func(ctx context.Context, _ string) error {
				all, err := c.List(ctx, nil)
				for _, in := range all {
					err = errors.Join(err, c.Destroy(ctx, in.ID))
				}
				return err
			}}
		}},
		{"closing a cloud keeps", "takes its instances along", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, close: func() error {
				all, err := c.List(context.Background(), nil)
				for _, in := range all {
					err = errors.Join(err, c.Destroy(context.Background(), in.ID))
				}
				return err
			}}
		}},
		{"closing a cloud keeps", "gives a new id to each who asks", func() func(c driver.Cloud) driver.Cloud {
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
		{"concurrent calls", "knows one instance at a time", func(c driver.Cloud) driver.Cloud {
			var first atomic.Pointer[driver.Instance]
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				in, taken, err := c.Create(ctx, r)
				first.CompareAndSwap(nil, &in)
				return *first.Load(), taken, err
			}}
		}},
		{"a list of many", "lists the first page", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				all, err := c.List(ctx, tags)
				return all[:min(4, len(all))], err // each is given twice
			}}
		}},
		{"a stopped instance", "destroys what it is to stop", func(c driver.Cloud) driver.Cloud {
			return stoppable{altered{Cloud: c}, func(id string) { c.Destroy(context.Background(), id) }}
		}},
		{"growing a volume", "grows what is gone", func(c driver.Cloud) driver.Cloud {
			return growable{altered{Cloud: c}, func(string) error { return nil }}
		}},
		{"growing a volume", "grows it once", func(c driver.Cloud) driver.Cloud {
			grown := map[string]bool{}
			return growable{altered{Cloud: c}, func(id string) error {
				if grown[id] {
					return drover.Errorf(drover.KindInvalid, "it has that size")
				}
				grown[id] = true
				return nil
			}}
		}},
		{"past prices", "tells the oldest first", func(c driver.Cloud) driver.Cloud {
			return remembering{c, []driver.PricePoint{{From: 1, Price: 2}, {From: 2, Price: 1}}}
		}},
		{"past prices", "tells what has not changed", func(c driver.Cloud) driver.Cloud {
			return remembering{c, []driver.PricePoint{{From: 2, Price: 1}, {From: 1, Price: 1}}}
		}},
		{"past prices", "tells nothing", func(c driver.Cloud) driver.Cloud { return remembering{c, nil} }},
		{"looking up a missing image", "takes any", func(c driver.Cloud) driver.Cloud {
			return finding{c, func() ([]driver.Image, error) { return []driver.Image{{ID: "i-1"}}, nil }}
		}},
		{"looking up a missing image", "fails", func(c driver.Cloud) driver.Cloud {
			return finding{c, func() ([]driver.Image, error) { return nil, drover.Errorf(drover.KindNotFound, "no such image") }}
		}},
		{"shared resources", "does not say whose it is", func(c driver.Cloud) driver.Cloud {
			return sharing{c, &[]driver.Leftover{{Kind: "key", ID: "k-1", Shared: true}}}
		}},
		{"shared resources", "makes another for each controller", func() func(driver.Cloud) driver.Cloud {
			keys := &[]driver.Leftover{}
			return func(c driver.Cloud) driver.Cloud {
				*keys = append(*keys, fleetKey(rand.Text()))
				return sharing{c, keys}
			}
		}()},
		{"shared resources", "keeps it", func(c driver.Cloud) driver.Cloud { return littered{c, fleetKey("k-1")} }},
		{"the init scripts", "runs none of the user's", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, create: func(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
				r.UserInit = drover.Secret{}
				return c.Create(ctx, r)
			}}
		}},
		{"no call outlives", "never looks at the context", func(c driver.Cloud) driver.Cloud {
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
		{"the installed key", "tells no address", func(c driver.Cloud) driver.Cloud {
			return altered{Cloud: c, list: func(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
				all, err := c.List(ctx, tags)
				for i := range all {
					all[i].Addresses = driver.Addresses{}
				}
				return all, err
			}}
		}},
		{"a wrong host key", "vouches for any", func(c driver.Cloud) driver.Cloud {
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
	t.Run("any other key is rejected, on a cloud that lets anybody in", func(t *testing.T) {
		check := find(t, "any other key")
		failing[check.Name] = true
		if err := check.Run(t.Context(), harness(time.Second, withOpenDoor)); err == nil {
			t.Error("the check passes")
		}
	})
	t.Run("no check is left out here", func(t *testing.T) {
		for _, c := range drivertest.Checks() {
			if !failing[c.Name] {
				t.Errorf("no flaw for: %s", c.Name)
			}
		}
	})
}

func TestSkip(t *testing.T) {
	t.Run("without logins, the checks that log in are skipped and the others are not", func(t *testing.T) {
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

func TestACheckThatCannotCleanUpIsNotSkipped(t *testing.T) {
	h := harness(100*time.Millisecond, injecting(middleware.MethodList, middleware.Trouble{Fail: 1}))
	h.NoLogin = true
	if err := find(t, "the installed key").Run(t.Context(), h); err == nil || errors.Is(err, drivertest.ErrSkipped) {
		t.Errorf("got %v", err)
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
