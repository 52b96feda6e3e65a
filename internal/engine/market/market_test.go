package market_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine/market"
	"drover/internal/engine/verdict"
)

const begin = drover.Time(1e18)

// spot is a spot offering of a type in a zone.
func spot(zone, name string) drover.Offering {
	return drover.Offering{Cloud: "c", Zone: zone, Type: drover.InstanceType{Name: name}, Market: drover.Spot}
}

func none(int64) (drover.Time, bool) { return 0, false }

func refused(kind drover.ErrorKind, scope drover.Scope) *drover.Error {
	return &drover.Error{Kind: kind, Scope: scope, Message: "no", Market: drover.Spot}
}

// open returns a market with two types in two zones.
func open() (*market.Market, *market.Catalogue) {
	c := &market.Catalogue{Name: "c"}
	m := market.New(nil, nil)
	m.At(begin)
	m.Configure([]*market.Catalogue{c}, []*market.Catalogue{c})
	m.Revise(c, market.Update{Hash: "1", Offerings: []drover.Offering{spot("a", "small"), spot("a", "large"), spot("b", "small")}})
	return m, c
}

func TestBlock(t *testing.T) {
	small := spot("a", "small")
	t.Run("lets one create call probe it after its time, and doubles if that is refused", func(t *testing.T) {
		m, _ := open()
		b := market.BlockFor(small, refused(drover.KindCapacity, drover.ScopeType))
		m.Add(b, 1)
		if m.BlockOf(small) == nil || m.BlockOf(spot("b", "small")) != nil {
			t.Fatal("the block does not cover exactly the offering")
		}
		m.At(begin.Add(time.Minute))
		m.Expire(none)
		if m.BlockFrom(small, 2) != nil {
			t.Error("nothing may probe the expired block")
		}
		m.Probe(2, []drover.Offering{small})
		if m.BlockFrom(small, 2) != nil || m.BlockOf(small) == nil {
			t.Error("others do not wait for the probe")
		}
		m.Add(b, 2)
		if got := m.BlockOf(small).Until(); got != begin.Add(3*time.Minute) {
			t.Errorf("the block lasts until %v, want two minutes later", got)
		}
	})
	t.Run("is not restarted by another refusal before its end", func(t *testing.T) {
		m, _ := open()
		b := market.BlockFor(small, refused(drover.KindQuota, drover.ScopeType))
		m.Add(b, 1)
		was := m.Revision()
		m.At(begin.Add(time.Second))
		if began, _ := m.Add(b, 2); began || m.Revision() != was || m.BlockOf(small).Until() != begin.Add(time.Minute) {
			t.Error("the block was restarted")
		}
	})
	t.Run("ends when its probe is created", func(t *testing.T) {
		m, _ := open()
		m.Add(market.BlockFor(small, refused(drover.KindCapacity, drover.ScopeZone)), 1)
		m.At(begin.Add(time.Minute))
		m.Expire(none)
		m.Probe(2, []drover.Offering{small})
		if !m.EndProbe(2, small, true, false) || len(m.Blocks()) != 0 {
			t.Errorf("blocks remain: %v", m.Blocks())
		}
	})
	t.Run("for quota may be probed once an instance is gone", func(t *testing.T) {
		m, _ := open()
		m.Add(market.BlockFor(small, refused(drover.KindQuota, "")), 1)
		if !m.Free(verdict.Quota, spot("b", "small")) || m.BlockFrom(small, 2) != nil {
			t.Error("the block still bars everything")
		}
	})
	t.Run("reports zones without unblocked offerings", func(t *testing.T) {
		m, _ := open()
		if _, zones := m.Add(market.BlockFor(small, refused(drover.KindCapacity, drover.ScopeType)), 1); len(zones) > 0 {
			t.Errorf("zones %v are reported, but zone a still has the large type", zones)
		}
		if _, zones := m.Add(market.BlockFor(spot("a", "large"), refused(drover.KindCapacity, drover.ScopeZone)), 1); !slices.Equal(zones, []string{"a"}) {
			t.Errorf("zones %v are reported, want a", zones)
		}
	})
}

func TestInterruptions(t *testing.T) {
	small := spot("a", "small")
	t.Run("block an offering if three of few instances are interrupted", func(t *testing.T) {
		m, _ := open()
		for i, name := range []string{"x", "y", "z"} {
			if began := m.Interrupted(int64(i), name, small, 3); began != (name == "z") {
				t.Errorf("instance %s: began %t", name, began)
			}
		}
	})
	t.Run("block nothing if there are many instances", func(t *testing.T) {
		m, _ := open()
		for i, name := range []string{"x", "y", "z"} {
			if m.Interrupted(int64(i), name, small, 30) {
				t.Error("a block started")
			}
		}
	})
	t.Run("stop blocking when a probe has lived for a while", func(t *testing.T) {
		m, _ := open()
		for i, name := range []string{"x", "y", "z"} {
			m.Interrupted(int64(i), name, small, 3)
		}
		at := begin.Add(15 * time.Minute)
		m.At(at)
		m.Expire(none)
		m.Probe(9, []drover.Offering{small})
		lives := func(int64) (drover.Time, bool) { return at, true }
		m.EndProbe(9, small, true, false)
		if m.Next(lives) != at.Add(15*time.Minute) || m.BlockOf(small) == nil {
			t.Error("the block ended when its probe was created")
		}
		m.At(at.Add(15 * time.Minute))
		if m.Expire(lives); len(m.Blocks()) != 0 {
			t.Errorf("blocks remain: %v", m.Blocks())
		}
	})
}

func TestThrottleIsHalvedByEachShortageAndEasedByEachCreate(t *testing.T) {
	_, c := open()
	small := spot("a", "small")
	c.Throttle(small, 7, begin)
	most := []int{}
	for range 3 {
		n, _ := c.AtOnce(small)
		most = append(most, n)
		c.Ease(small, 10)
	}
	c.Throttle(small, 7, begin)
	if n, _ := c.AtOnce(small); !slices.Equal(most, []int{4, 5, 6}) || n != 3 {
		t.Errorf("%v and then %d may be requested at once", most, n)
	}
	for range 10 {
		c.Ease(small, 10)
	}
	if n, limited := c.AtOnce(small); limited {
		t.Errorf("only %d may be requested at once", n)
	}
}

// Updating a catalogue by its changes gives the same result as the whole catalogue.
func TestCatalogueUpdatedByChangesIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, c := open()
		was := c.Offerings
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			var now []drover.Offering
			for _, zone := range []string{"a", "b", "c"} {
				for _, name := range []string{"small", "large"} {
					if o := spot(zone, name); rapid.Bool().Draw(t, "offered") {
						o.Price = drover.Money(rapid.IntRange(1, 2).Draw(t, "price"))
						now = append(now, o)
					}
				}
			}
			now = market.Sorted(now)
			changed, removed := market.Changes(was, now)
			rev := m.Revision()
			news, again := m.Revise(c, market.Update{Base: c.Hash, Hash: c.Hash + ".", Offerings: changed, Removed: removed})
			if diff := cmp.Diff(now, append([]drover.Offering(nil), c.Offerings...)); diff != "" || again {
				t.Fatalf("asked again: %t; %s", again, diff)
			}
			if moved := m.Revision() != rev; moved != news || moved != (len(changed)+len(removed) > 0) {
				t.Fatalf("changed: %t, revision raised: %t", news, moved)
			}
			var missing []market.OfferingKey
			for _, o := range c.Missing {
				missing = append(missing, market.KeyOf(o))
			}
			if diff := cmp.Diff(removed, missing); diff != "" {
				t.Fatalf("missing from the last update: %s", diff)
			}
			was = now
		}
		if _, again := m.Revise(c, market.Update{Base: "another"}); !again {
			t.Fatal("changes to another catalogue are accepted")
		}
	})
}

func TestLimits(t *testing.T) {
	two := 2
	l := market.Limits{{Cloud: "c", Zone: "a", Instances: &two}}
	small, large, far := spot("a", "small"), spot("a", "large"), spot("b", "small")
	l.Take(1, small, far)
	if l.Passed(large) != nil {
		t.Error("a second instance exceeds a limit of two")
	}
	l.Take(1, large)
	if got := l.Within([]drover.Offering{small, far, large}); len(got) != 1 || got[0] != far {
		t.Errorf("within the limits are %v, want only the one in zone b", got)
	}
	if !l.Clears([]drover.Offering{large}, small) || l.Clears([]drover.Offering{far}, small) {
		t.Error("the end of an instance in zone a does not make room there, or one in zone b does")
	}
}
