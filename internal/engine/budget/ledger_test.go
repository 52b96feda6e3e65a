package budget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"drover"
	"drover/internal/engine/budget"
)

// fleet is a changing set of instances, and the ledger that follows it.
type fleet struct {
	dice     *rand.Rand
	now      drover.Time
	settings budget.Settings
	claims   map[int64]budget.Claim
	last     int64
	ledger   *budget.Ledger
}

func newFleet(seed uint64, s budget.Settings) *fleet {
	f := &fleet{dice: rand.New(rand.NewPCG(seed, 1)), now: drover.TimeOf(time.Date(2026, 1, 31, 22, 10, 0, 0, time.UTC)), settings: s, claims: map[int64]budget.Claim{}}
	f.ledger = budget.New(0, nil, 0, f.claim)
	f.ledger.At(f.now)
	f.ledger.Configure(s, nil)
	f.ledger.Keep(nil)
	return f
}

func (f *fleet) claim(id int64) (budget.Claim, bool) {
	c, there := f.claims[id]
	return c, there
}

// rebuilt returns a ledger rebuilt from the present claims.
func (f *fleet) rebuilt() *budget.Ledger {
	spent, spending, turn := f.ledger.State()
	l := budget.New(spent, spending, turn, f.claim)
	l.At(f.now)
	var ids []int64
	for id := int64(1); id <= f.last; id++ {
		if _, there := f.claims[id]; there {
			ids = append(ids, id)
		}
	}
	l.Configure(f.settings, ids)
	return l
}

// draw returns a random claim.
func (f *fleet) draw() budget.Claim {
	price := drover.Money(1+f.dice.Int64N(9)) * drover.Dollar / 10
	o := drover.Offering{Price: price, Type: drover.InstanceType{Resources: drover.Resources{CPU: 4000}}}
	c := budget.Claim{Asked: f.now, Tariff: drover.Tariff{Price: price}, CPU: 4000, Offers: []drover.Offering{o}, Boot: 5 * time.Minute}
	if f.dice.IntN(2) == 0 {
		c.Billing = drover.Billing{Period: time.Hour}
	}
	for range f.dice.IntN(3) {
		c.Bound = append(c.Bound, f.load())
	}
	return c
}

func (f *fleet) load() budget.Load {
	return budget.Load{Payer: f.payer(), CPU: 1000, Horizon: time.Duration(1+f.dice.Int64N(200)) * time.Minute, Count: 1 + f.dice.IntN(2)}
}

func (f *fleet) payer() budget.Payer {
	return budget.Payer{User: []string{"ada", "bob"}[f.dice.IntN(2)], Labels: []string{"", "project=p", "kind=k\nproject=p"}[f.dice.IntN(3)]}
}

// step makes a random change, often at the time of the last one: an instance is added or created, starts or ends an
// attempt, or goes.
func (f *fleet) step() {
	if f.dice.IntN(3) > 0 {
		f.now = f.now.Add(time.Duration(f.dice.Int64N(int64(30 * time.Minute))))
	}
	f.ledger.At(f.now)
	f.ledger.Turn()
	id := 1 + f.dice.Int64N(f.last+1)
	c, there := f.claims[id]
	switch {
	case id > f.last:
		f.last++
		c = f.draw()
	case !there:
		return
	case c.Created == 0:
		c.Created = f.now
	case len(c.Bound) > 0:
		for _, l := range c.Bound {
			c.Uses = append(c.Uses[:len(c.Uses):len(c.Uses)], budget.Use{Payer: l.Payer, Started: f.now, CPU: l.CPU, Horizon: l.Horizon})
		}
		c.Bound = nil
	case len(c.Uses) > 0 && c.Uses[0].Ended == 0:
		c.Uses = append([]budget.Use{}, c.Uses...)
		c.Uses[0].Ended = f.now
	case c.Ended == 0:
		c.Uses, c.Ended = nil, c.Billing.PaidUntil(c.Created, f.now)
	default:
		delete(f.claims, id)
		f.ledger.Changed(id)
		return
	}
	f.claims[id] = c
	f.ledger.Changed(id)
}

var settings = budget.Settings{
	Max: 100 * drover.Dollar,
	Budgets: []budget.Budget{
		{Hard: budget.Amounts{Hourly: 2 * drover.Dollar, Monthly: 30 * drover.Dollar}},
		{User: "ada", Hard: budget.Amounts{Daily: 5 * drover.Dollar}, Soft: budget.Amounts{Hourly: drover.Dollar / 5}},
		{Label: "project=p", Hard: budget.Amounts{Hourly: drover.Dollar / 2}, Stop: true},
	},
}

// A ledger updated from change to change, across hours, days and the end of a month, gives the same answers as a
// rebuilt one.
func TestLedgerAnswersAsARebuiltOne(t *testing.T) {
	refused := 0
	for seed := range uint64(60) {
		f := newFleet(seed, settings)
		for n := range 80 {
			f.step()
			f.ledger.Watch()
			c := budget.Commitment{Offers: f.draw().Offers, Boots: 5 * time.Minute, Loads: []budget.Load{f.load()}}
			rebuilt := f.rebuilt()
			got, want := f.ledger.Refuses(nil, c), rebuilt.Refuses(nil, c)
			if name(got) != name(want) {
				t.Fatalf("seed %d, step %d at %v: %s refuses, but %s in the rebuilt ledger", seed, n, f.now, name(got), name(want))
			}
			if got != nil {
				refused++
			}
			if f.dice.IntN(3) > 0 {
				continue
			}
			present := rebuilt.Present()
			for i, a := range f.ledger.Present() {
				if got, want := f.ledger.Sum(a), rebuilt.Sum(present[i]); got != want {
					t.Fatalf("seed %d, step %d: %s has %v, but %v in the rebuilt ledger", seed, n, name(a), got, want)
				}
				if got, want := f.ledger.Spent(a), rebuilt.Spent(present[i]); got != want {
					t.Fatalf("seed %d, step %d: %v is spent of %s, but %v in the rebuilt ledger", seed, n, got, name(a), want)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was ever refused")
	}
}

func name(a *budget.Account) string {
	switch {
	case a == nil:
		return "nobody"
	case a.Budget == nil:
		return "the whole"
	}
	return fmt.Sprintf("%s of %s from %v", a.Window, a.Budget.Scope(), a.From)
}

func TestALedger(t *testing.T) {
	hour := budget.Settings{Budgets: []budget.Budget{{Hard: budget.Amounts{Hourly: drover.Dollar}, Soft: budget.Amounts{Hourly: drover.Dollar / 2}}}}
	running := func(f *fleet, price drover.Money) {
		f.last++
		f.claims[f.last] = budget.Claim{Asked: f.now, Created: f.now, Tariff: drover.Tariff{Price: price}, CPU: 1000,
			Uses: []budget.Use{{Started: f.now, CPU: 1000, Horizon: 10 * time.Hour}}}
		f.ledger.Changed(f.last)
	}
	after := func(f *fleet, d time.Duration) {
		f.now = f.now.Add(d)
		f.ledger.At(f.now)
		f.ledger.Turn()
	}
	rental := func(price drover.Money) budget.Commitment {
		return budget.Commitment{Offers: []drover.Offering{{Price: price}}, Boots: 30 * time.Minute}
	}
	t.Run("refuses a commitment that would exceed the next hour's limit together with earlier ones", func(t *testing.T) {
		f := newFleet(1, hour) // ten past ten
		running(f, 90*drover.Dollar/100)
		if a := f.ledger.Refuses(nil, rental(drover.Dollar*6/10)); a == nil || !a.Present {
			t.Errorf("%s refuses, want this hour's account", name(a))
		}
		after(f, 45*time.Minute) // five to eleven: 25 minutes of half an hour are in the next
		if a := f.ledger.Refuses(nil, rental(drover.Dollar*6/10)); a == nil || a.Present {
			t.Errorf("%s refuses, want the next hour's account", name(a))
		}
	})
	t.Run("allows a commitment that the end of another instance makes room for", func(t *testing.T) {
		f := newFleet(1, hour)
		running(f, 90*drover.Dollar/100)
		if a := f.ledger.Refuses([]*budget.Claim{f.ledger.Claim(1)}, rental(drover.Dollar*6/10)); a != nil {
			t.Errorf("%s refuses", name(a))
		}
	})
	t.Run("reports each limit once per window", func(t *testing.T) {
		f := newFleet(1, hour)
		running(f, 2*drover.Dollar)
		told := ""
		for range 100 {
			after(f, time.Minute)
			passed, _, _ := f.ledger.Watch()
			for _, p := range passed {
				told += fmt.Sprintf("%d:%d hard %t, ", f.now.Std().Hour(), f.now.Std().Minute(), p.Hard)
			}
		}
		if want := "22:26 hard false, 22:41 hard true, 23:16 hard false, 23:31 hard true, "; told != want {
			t.Errorf("reported %s want %s", told, want)
		}
	})
	t.Run("counts a settled cost in the windows in which it was spent", func(t *testing.T) {
		f := newFleet(1, hour)
		f.ledger.SettleInstance(6*drover.Dollar, func(from, to drover.Time) drover.Money {
			return drover.Tariff{Price: 6 * drover.Dollar}.Cost(f.now, from, min(to, f.now.Add(time.Hour)))
		})
		if used := f.ledger.Usages(); used[0].Spent != 5*drover.Dollar {
			t.Errorf("%v is spent in this hour", used[0].Spent)
		}
		after(f, time.Hour)
		if used := f.ledger.Usages(); used[0].Spent != drover.Dollar {
			t.Errorf("%v is spent in the next hour", used[0].Spent)
		}
	})
}

// An instance may be paid for until the end of its billing period. When it goes, all of that is spent at once.
func TestReportsALimitExceededByAPaidPeriod(t *testing.T) {
	f := newFleet(1, budget.Settings{Budgets: []budget.Budget{{Soft: budget.Amounts{Hourly: drover.Dollar / 2}}}})
	f.claims[1] = budget.Claim{Asked: f.now, Created: f.now, Tariff: drover.Tariff{Price: drover.Dollar}, Billing: drover.Billing{Period: time.Hour}}
	f.last = 1
	f.ledger.Changed(1)
	f.ledger.Watch()
	f.now = f.now.Add(time.Minute)
	f.ledger.At(f.now)
	if passed, _, _ := f.ledger.Watch(); len(passed) > 0 {
		t.Fatalf("after a minute, %v is reported", passed)
	}
	bill := func(from, to drover.Time) drover.Money {
		return drover.Tariff{Price: drover.Dollar}.Cost(f.now.Add(-time.Minute), from, min(to, f.now.Add(59*time.Minute)))
	}
	delete(f.claims, 1)
	f.ledger.Changed(1)
	f.ledger.SettleInstance(drover.Dollar, bill)
	if passed, _, _ := f.ledger.Watch(); len(passed) != 1 {
		t.Errorf("%v is reported, want the soft limit", passed)
	}
}
