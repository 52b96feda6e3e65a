package middleware

import (
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"drover"
	"drover/driver"
)

// Faults are what goes wrong in a cloud. The same seed and calls give the same faults.
type Faults struct {
	Seed     uint64
	Calls    map[Method]Trouble
	Unlisted time.Duration // how long a new instance is missing from lists
	Lingers  time.Duration // how long a destroyed instance is still listed
}

// Trouble is what happens to one kind of call. Fail, Lose and Double are fractions of the calls.
type Trouble struct {
	Delay  time.Duration // before each call
	Fail   float64       // fail without an effect
	Errors []error       // their errors, in turn; none: transient
	Lose   float64       // take effect, but their answer is lost
	Double float64       // of creates: make a second instance of the same name
}

// Inject wraps a cloud so that it misbehaves.
func Inject(c driver.Cloud, f Faults) driver.Cloud {
	i := &injected{within: c, faults: f, calls: map[Method]int{}, failed: map[Method]int{}, made: map[string]time.Time{}, gone: map[string]ghost{}}
	i.Cloud = Intercept(c, i.meet)
	return i
}

type injected struct {
	driver.Cloud // whose calls have the faults
	within       driver.Cloud
	faults       Faults

	mu     sync.Mutex
	calls  map[Method]int       // how many calls were made; guarded by mu
	failed map[Method]int       // how many of them failed; guarded by mu
	made   map[string]time.Time // when each instance was made, by id; guarded by mu
	seen   []driver.Instance    // the last list; guarded by mu
	gone   map[string]ghost     // by id; guarded by mu
}

// ghost is a destroyed instance that is still listed until a time.
type ghost struct {
	driver.Instance
	until time.Time
}

// Unwrap returns the cloud within.
func (i *injected) Unwrap() driver.Cloud { return i.Cloud }

// Capabilities are the cloud's, with the injected list lag.
func (i *injected) Capabilities() driver.Capabilities {
	can := i.Cloud.Capabilities()
	if lag := max(i.faults.Unlisted, i.faults.Lingers); lag > can.Lag() {
		can.ListLag = lag
	}
	return can
}

// meet makes one call with the faults drawn for it.
func (i *injected) meet(ctx context.Context, a Call, do func(context.Context) error) error {
	t, ok := i.faults.Calls[a.Method]
	if !ok {
		return do(ctx)
	}
	if err := pause(ctx, t.Delay); err != nil {
		return err
	}
	dice := i.draw(a.Method)
	if dice.Float64() < t.Fail {
		return i.fail(a.Method, t)
	}
	if err := do(ctx); err != nil {
		return err
	}
	lost := dice.Float64() < t.Lose
	if a.Create != nil && dice.Float64() < t.Double {
		twin := *a.Create
		twin.Name += "-twin"
		if _, _, err := i.within.Create(ctx, twin); err != nil {
			return err
		}
	}
	if lost {
		return drover.Errorf(drover.KindTransient, "%s: the response was lost because of an injected fault", a.Method)
	}
	return nil
}

// draw returns the random source of one call.
func (i *injected) draw(call Method) *rand.Rand {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls[call]++
	return Chance(i.faults.Seed, string(call), strconv.Itoa(i.calls[call]))
}

func (i *injected) fail(call Method, t Trouble) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.failed[call]
	i.failed[call]++
	if len(t.Errors) > 0 {
		return t.Errors[n%len(t.Errors)]
	}
	return drover.Errorf(drover.KindTransient, "%s: this call failed because of an injected fault", call)
}

// Chance returns the random source of one event: the same seed and event always give the same one.
func Chance(seed uint64, what, which string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(what + "/" + which))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Create records when the instance was made.
func (i *injected) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	in, taken, err := i.Cloud.Create(ctx, r)
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, before := i.made[in.ID]; err == nil && !before && i.faults.Unlisted > 0 {
		i.made[in.ID] = time.Now()
	}
	return in, taken, err
}

// List omits new instances and still shows ended ones, for as long as the injected lag.
func (i *injected) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	all, err := i.Cloud.List(ctx, tags)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	all = slices.DeleteFunc(all, func(in driver.Instance) bool { return now.Sub(i.made[in.ID]) < i.faults.Unlisted })
	maps.DeleteFunc(i.gone, func(_ string, g ghost) bool { return now.After(g.until) })
	i.seen = slices.Clone(all)
	for _, g := range i.gone {
		if g.Bears(tags) && !slices.ContainsFunc(all, func(in driver.Instance) bool { return in.ID == g.ID }) {
			all = append(all, g.Instance)
		}
	}
	return all, nil
}

// Destroy keeps a listed instance on the list for a while.
func (i *injected) Destroy(ctx context.Context, id string) error {
	err := i.Cloud.Destroy(ctx, id)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		delete(i.made, id)
	}
	at := slices.IndexFunc(i.seen, func(in driver.Instance) bool { return in.ID == id })
	if _, before := i.gone[id]; err == nil && at >= 0 && !before && i.faults.Lingers > 0 {
		i.gone[id] = ghost{i.seen[at], time.Now().Add(i.faults.Lingers)}
	}
	return err
}

// pause waits, or returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
