package billing_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
	"drover/internal/billing"
)

const begin = drover.Time(1e18)

func at(minutes int) drover.Time { return begin.Add(time.Duration(minutes) * time.Minute) }

// bill is for an instance with four vCPUs at a dollar a minute, which boots for ten minutes and lasts an hour.
func bill() billing.Bill {
	return billing.Bill{Tariff: drover.Tariff{Price: 60 * drover.Dollar}, Created: at(0), Ready: at(10), End: at(60), CPU: 4000}
}

func use(from, to int, cpu drover.MilliCPU) billing.Use {
	return billing.Use{Started: at(from), Ended: at(to), CPU: cpu}
}

func lost(u billing.Use) billing.Use {
	u.Lost = true
	return u
}

// divide charges the uses and adds up all the parts.
func divide(b billing.Bill, from, to drover.Time, uses ...billing.Use) (sum billing.Parts) {
	a := b.Open(from, to)
	for _, u := range uses {
		sum = sum.Plus(a.Charge(u))
	}
	return sum.Plus(a.Rest())
}

func TestParts(t *testing.T) {
	gone := bill()
	gone.Unused = true
	never := bill()
	never.Ready = 0
	for name, c := range map[string]struct {
		bill     billing.Bill
		from, to int
		uses     []billing.Use
		want     [4]drover.Money // jobs, boot, idle, waste, in cents
	}{
		"a job has its vCPUs' share, and the rest is idle":                        {bill(), 0, 60, []billing.Use{use(20, 40, 1000)}, [4]drover.Money{500, 1000, 4500, 0}},
		"concurrent jobs share the whole cost":                                    {bill(), 20, 30, []billing.Use{use(10, 60, 1000), use(20, 60, 3000)}, [4]drover.Money{1000, 0, 0, 0}},
		"a lost attempt is waste":                                                 {bill(), 0, 60, []billing.Use{lost(use(10, 30, 4000)), use(30, 60, 4000)}, [4]drover.Money{3000, 1000, 0, 2000}},
		"a period cuts boot and jobs at its ends":                                 {bill(), 5, 25, []billing.Use{use(20, 40, 4000)}, [4]drover.Money{500, 500, 1000, 0}},
		"an instance that never ran a job is waste once it is gone":               {gone, 0, 60, nil, [4]drover.Money{0, 0, 0, 6000}},
		"an instance that is not ready boots":                                     {never, 0, 60, nil, [4]drover.Money{0, 6000, 0, 0}},
		"an attempt ends with the bill, however late that is noticed":             {bill(), 0, 90, []billing.Use{lost(use(50, 80, 4000))}, [4]drover.Money{0, 1000, 4000, 1000}},
		"a job that needs more than the instance has gets no more than the whole": {bill(), 10, 20, []billing.Use{use(10, 20, 9000)}, [4]drover.Money{1000, 0, 0, 0}},
		"a period after the bill costs nothing":                                   {bill(), 70, 90, []billing.Use{use(20, 40, 1000)}, [4]drover.Money{}},
	} {
		t.Run(name, func(t *testing.T) {
			cent := drover.Dollar / 100
			want := billing.Parts{Jobs: c.want[0] * cent, Boot: c.want[1] * cent, Idle: c.want[2] * cent, Waste: c.want[3] * cent}
			if got := divide(c.bill, at(c.from), at(c.to), c.uses...); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// For any uses in any period nothing is lost or paid twice, and the costs of two periods add up to that of both
// together.
func TestThePartsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moment := rapid.Map(rapid.Int64Range(0, 4e12), func(n int64) drover.Time { return begin + drover.Time(n) })
		money := rapid.Map(rapid.Int64Range(0, 1e11), func(n int64) drover.Money { return drover.Money(n) })
		b := billing.Bill{Created: begin, Ready: moment.Draw(rt, "ready"), End: moment.Draw(rt, "end"), CPU: 7000, Unused: rapid.Bool().Draw(rt, "unused")}
		b.Tariff = drover.Tariff{Price: money.Draw(rt, "price")}.Changed(money.Draw(rt, "later"), moment.Draw(rt, "moves"))
		var uses []billing.Use
		for range rapid.IntRange(0, 7).Draw(rt, "uses") {
			u := billing.Use{Started: moment.Draw(rt, "started"), Ended: moment.Draw(rt, "ended"), CPU: 1000, Lost: rapid.Bool().Draw(rt, "lost")}
			if rapid.Bool().Draw(rt, "settled") {
				u.Settled, u.Cost = true, b.Share(u, u.Started, u.Ended)/2
			}
			uses = append(uses, u)
		}
		from, to := moment.Draw(rt, "from"), moment.Draw(rt, "to")
		from, to = min(from, to), max(from, to)
		middle := from + (to-from)/3
		whole := divide(b, from, to, uses...)
		if got, want := whole.Sum(), b.Cost(from, to); got != want {
			rt.Errorf("the parts add up to %d, but it cost %d", got, want)
		}
		for _, part := range []drover.Money{whole.Jobs, whole.Boot, whole.Idle, whole.Waste} {
			if part < 0 {
				rt.Errorf("a part is negative: %+v", whole)
			}
		}
		for _, u := range uses {
			if got, want := b.Share(u, from, middle)+b.Share(u, middle, to), b.Share(u, from, to); got != want {
				rt.Errorf("an attempt has %d in two periods but %d in one", got, want)
			}
		}
	})
}
