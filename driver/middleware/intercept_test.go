package middleware_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// able is a cloud that supports everything, and records the calls that reach it.
type able struct {
	met []string
	err error
}

func (a *able) note(call string) error {
	a.met = append(a.met, call)
	return a.err
}

func (a *able) Capabilities() driver.Capabilities {
	return driver.Capabilities{Init: driver.InitCloud, Template: true, StopStart: true, GrowDisk: true, Describe: true}
}
func (a *able) Offerings(context.Context) ([]drover.Offering, error) {
	return []drover.Offering{{}}, a.note("list_offerings")
}
func (a *able) Create(_ context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return driver.Instance{ID: r.Name, Tags: r.Tags}, driver.Candidate{Zone: "z"}, a.note("create " + r.Name)
}
func (a *able) List(context.Context, map[string]string) ([]driver.Instance, error) {
	return []driver.Instance{of("i", "ours", "p")}, a.note("list_instances")
}
func (a *able) Destroy(_ context.Context, id string) error { return a.note("destroy " + id) }
func (a *able) SetTags(_ context.Context, id string, _ map[string]string) error {
	return a.note("set_tags " + id)
}
func (a *able) VerifyHostKey(_ context.Context, in driver.Instance, _, _ []byte) error {
	return a.note("verify_host_key " + in.ID)
}
func (a *able) Close() error                             { return nil }
func (a *able) Stop(_ context.Context, id string) error  { return a.note("stop " + id) }
func (a *able) Start(_ context.Context, id string) error { return a.note("start " + id) }
func (a *able) Remove(_ context.Context, s driver.Leftover) error {
	return a.note("remove " + s.Kind + " " + s.ID)
}
func (a *able) GrowDisk(_ context.Context, id string, _ drover.Bytes) error {
	return a.note("grow_disk " + id)
}
func (a *able) PriceHistory(context.Context, string, string, drover.Market, drover.Time) ([]driver.PricePoint, error) {
	return []driver.PricePoint{{}}, a.note("list_prices")
}
func (a *able) FindImages(_ context.Context, ref string, _ drover.Arch) ([]driver.Image, error) {
	return []driver.Image{{ID: ref}}, a.note("find_images " + ref)
}
func (a *able) Attribute(_ context.Context, name string) (string, error) {
	return "text", a.note("read_attribute " + name)
}
func (a *able) Describe(_ context.Context, id string) (driver.Instance, error) {
	return of(id, "ours", "p"), a.note("describe " + id)
}
func (a *able) Leftovers(context.Context, string) ([]driver.Leftover, error) {
	return []driver.Leftover{{Kind: "disk", ID: "i"}}, a.note("list_leftovers")
}

// everything returns every possible call, by the text that able records.
func everything(c driver.Cloud) map[string]func(context.Context) error {
	starter, _ := driver.As[driver.Starter](c)
	describer, _ := driver.As[driver.Describer](c)
	grower, _ := driver.As[driver.DiskGrower](c)
	historian, _ := driver.As[driver.PriceHistorian](c)
	finder, _ := driver.As[driver.ImageFinder](c)
	reaper, _ := driver.As[driver.Reaper](c)
	attributes, _ := driver.As[driver.Attributes](c)
	return map[string]func(context.Context) error{
		"list_offerings":    func(ctx context.Context) error { return lists(c.Offerings(ctx)) },
		"list_instances":    func(ctx context.Context) error { return lists(c.List(ctx, nil)) },
		"destroy i":         func(ctx context.Context) error { return c.Destroy(ctx, "i") },
		"set_tags i":        func(ctx context.Context) error { return c.SetTags(ctx, "i", nil) },
		"verify_host_key i": func(ctx context.Context) error { return c.VerifyHostKey(ctx, driver.Instance{ID: "i"}, nil, nil) },
		"stop i":            func(ctx context.Context) error { return starter.Stop(ctx, "i") },
		"start i":           func(ctx context.Context) error { return starter.Start(ctx, "i") },
		"grow_disk i":       func(ctx context.Context) error { return grower.GrowDisk(ctx, "i", 1) },
		"find_images i":     func(ctx context.Context) error { return lists(finder.FindImages(ctx, "i", "")) },
		"list_leftovers":    func(ctx context.Context) error { return lists(reaper.Leftovers(ctx, "f")) },
		"remove disk i":     func(ctx context.Context) error { return reaper.Remove(ctx, driver.Leftover{Kind: "disk", ID: "i"}) },
		"read_attribute a": func(ctx context.Context) error {
			text, err := attributes.Attribute(ctx, "a")
			if err == nil && text != "text" {
				return errors.New("the answer was lost on its way")
			}
			return err
		},
		"list_prices": func(ctx context.Context) error {
			return lists(historian.PriceHistory(ctx, "t", "z", drover.Spot, 0))
		},
		"describe i": func(ctx context.Context) error {
			in, err := describer.Describe(ctx, "i")
			if err == nil && in.ID != "i" {
				return errors.New("the answer was lost on its way")
			}
			return err
		},
		"create i": func(ctx context.Context) error {
			in, taken, err := c.Create(ctx, driver.CreateRequest{Name: "i", Candidates: []driver.Candidate{{}}})
			if err == nil && (in.ID != "i" || taken.Zone != "z") {
				return errors.New("the answer was lost on its way")
			}
			return err
		},
	}
}

// lists returns an error unless a list has one element.
func lists[T any](all []T, err error) error {
	if err == nil && len(all) != 1 {
		return errors.New("the list was lost on its way")
	}
	return err
}

// decorators are all decorators of a cloud, set up so that they let every call pass.
var decorators = map[string]func(driver.Cloud) driver.Cloud{
	"Intercept": func(c driver.Cloud) driver.Cloud {
		return middleware.Intercept(c, func(ctx context.Context, _ middleware.Call, do func(context.Context) error) error { return do(ctx) })
	},
	"Throttle":  middleware.Throttle,
	"WithRetry": middleware.WithRetry,
	"Measure": func(c driver.Cloud) driver.Cloud {
		return middleware.Measure(c, func(middleware.Method, time.Duration, error) {})
	},
	"Inject": func(c driver.Cloud) driver.Cloud { return middleware.Inject(c, middleware.Faults{}) },
	"WithImages": func(c driver.Cloud) driver.Cloud {
		return middleware.WithImages(c, map[drover.Arch]string{"": "i"})
	},
	"Customize": func(c driver.Cloud) driver.Cloud {
		customized, err := middleware.Customize(c, middleware.Custom{Template: "{name}"})
		if err != nil {
			panic(err)
		}
		return customized
	},
}

// covers C11
func TestEveryCallPassesThroughEveryDecorator(t *testing.T) {
	for name, dress := range decorators {
		t.Run(name, func(t *testing.T) {
			a := &able{}
			for call, do := range everything(dress(a)) {
				a.met = nil
				if err := do(t.Context()); err != nil || !slices.Contains(a.met, call) {
					t.Errorf("%s: %v, reached %q", call, err, a.met)
				}
			}
			a.err = drover.Errorf(drover.KindQuota, "no more")
			for call, do := range everything(dress(a)) {
				if err := do(t.Context()); drover.KindOf(err) != drover.KindQuota {
					t.Errorf("%s: got %v", call, err)
				}
			}
		})
		t.Run(name+" adds nothing to a cloud", func(t *testing.T) {
			c := dress(struct{ driver.Cloud }{&able{}})
			for what, found := range optional(c) {
				if found {
					t.Errorf("found a %s that the cloud lacks", what)
				}
			}
		})
	}
	t.Run("this test covers every optional interface", func(t *testing.T) {
		if diff := cmp.Diff(interfaces(t), slices.Sorted(maps.Keys(optional(&able{})))); diff != "" {
			t.Errorf("in the package, here: %s", diff)
		}
	})
}

func optional(c driver.Cloud) map[string]bool {
	return map[string]bool{
		"Starter": is[driver.Starter](c), "Describer": is[driver.Describer](c), "DiskGrower": is[driver.DiskGrower](c), "PriceHistorian": is[driver.PriceHistorian](c),
		"Attributes": is[driver.Attributes](c), "ImageFinder": is[driver.ImageFinder](c), "Reaper": is[driver.Reaper](c),
	}
}

func is[T any](c driver.Cloud) bool {
	_, ok := driver.As[T](c)
	return ok
}

// interfaces returns the names of the package's interfaces, except Cloud.
func interfaces(t *testing.T) (names []string) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name != "Cloud" {
				if _, ok := spec.Type.(*ast.InterfaceType); ok {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		slow := middleware.Inject(&able{err: errors.New("no")}, middleware.Faults{Calls: map[middleware.Method]middleware.Trouble{middleware.MethodList: {Delay: time.Second}}})
		c := middleware.Measure(slow, func(call middleware.Method, took time.Duration, err error) {
			told = append(told, string(call)+" "+took.String()+" "+err.Error())
		})
		c.List(t.Context(), nil)
		c.Destroy(t.Context(), "i")
		if diff := cmp.Diff([]string{"list_instances 1s no", "destroy 0s no"}, told); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDryRun(t *testing.T) {
	a := &able{}
	var told []string
	c := middleware.DryRun(a, func(a middleware.Call) { told = append(told, string(a.Method)+" "+a.ID) })
	for call, do := range everything(c) {
		a.met, told = nil, nil
		err := do(t.Context())
		name, _, _ := strings.Cut(call, " ")
		if changes := middleware.Method(name).Changes(); changes != (err != nil) || changes != slices.Contains(told, call) || changes == slices.Contains(a.met, call) {
			t.Errorf("%s: %v, told %q, reached %q", call, err, told, a.met)
		}
	}
	t.Run("a refused create leads to no alternative", func(t *testing.T) {
		_, _, err := c.Create(t.Context(), driver.CreateRequest{Name: "i"})
		if e := drover.AsError(err, ""); e.Kind != drover.KindQuota || e.Scope != drover.ScopeAll {
			t.Errorf("got %+v", e)
		}
	})
}
