package store

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
)

// paidInstance writes an instance with four vCPUs at a dollar an hour that took half an hour to boot.
func paidInstance(id int64, kind string, change ...func(*engine.Instance)) engine.Write {
	in := engine.Instance{
		ID: id, Name: fmt.Sprint("lab-", id), Cloud: "here", Type: drover.InstanceType{Name: kind}, State: drover.InstanceRunning, Price: drover.Dollar,
		Resources: drover.Resources{CPU: 4000}, Created: hour, Ready: hour + hour/2, Idle: drover.IdleRun, Used: true,
	}
	for _, c := range change {
		c(&in)
	}
	return engine.Write{Instance: &in}
}

func paidAttempt(id drover.JobID, number int, instance int64, state drover.AttemptState, from, to drover.Time, cost drover.Money) engine.Write {
	a := engine.Attempt{ID: drover.AttemptID{Job: id, Number: number}, Instance: instance, State: state, Started: from, Ended: to}
	return engine.Write{Attempt: &engine.AttemptRow{Attempt: a, Cost: cost}}
}

func goneAt(id int64, at drover.Time) engine.Write {
	return engine.Write{Gone: &engine.InstanceEnd{ID: id, At: at}}
}

func costSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("costs are divided by their purpose", func(t *testing.T) { costParts(t, openers) })
	t.Run("an attempt keeps its cost when earlier prices are folded", func(t *testing.T) { costFolded(t, openers) })
	t.Run("an instance that served its pool is not waste because no job ran on it", func(t *testing.T) { costPool(t, openers) })
	t.Run("prepaid time counts, in a period only once it has passed", func(t *testing.T) { costAhead(t, openers) })
	t.Run("the parts of any period add up to the bills", func(t *testing.T) { costSums(t, openers) })
}

// costParts has three instances: the first ran job 1 and an attempt that was lost, the second, whose price doubled
// after an hour, still runs an element of the array, and the third had no job.
func costParts(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	submitted(t, s)
	dearer := func(in *engine.Instance) {
		in.Price, in.Rates = 2*drover.Dollar, []drover.Rate{{Price: drover.Dollar, Until: 2 * hour}}
	}
	unused := func(in *engine.Instance) { in.Used = false }
	commit(t, s,
		paidInstance(1, "small"), paidInstance(2, "large", dearer), paidInstance(3, "small", unused),
		engine.Write{Instance: &engine.Instance{ID: 4, Name: "lab-4", State: drover.InstanceCreating}},
		paidAttempt(drover.JobID{Number: 1, Index: -1}, 1, 1, drover.AttemptSucceeded, 2*hour, 4*hour, drover.Dollar/2),
		paidAttempt(drover.JobID{Number: 2, Index: 1}, 1, 1, drover.AttemptLost, 4*hour, 7*hour, drover.Dollar/2),
		paidAttempt(drover.JobID{Number: 2, Index: 1}, 2, 2, drover.AttemptRunning, 4*hour, 0, 0),
		goneAt(1, 6*hour), goneAt(3, 3*hour),
	)
	line := func(key, name string, jobs, boot, idle, waste float64) drover.CostLine {
		return drover.CostLine{Key: key, Name: name, Jobs: jobs, Boot: boot, Idle: idle, Waste: waste, Cost: jobs + boot + idle + waste}
	}
	rest := line("", "", 0, 1, 13.25, 2)
	all := line("", "", 2.25, 1, 13.25, 2.5)
	for name, c := range map[string]struct {
		filter drover.CostFilter
		lines  []drover.CostLine
		others *drover.CostLine
		total  drover.CostLine
	}{
		"by job":             {drover.CostFilter{By: drover.CostByJob}, []drover.CostLine{rest, line("2", "greet", 1.75, 0, 0, .5), line("1", "last", .5, 0, 0, 0)}, nil, all},
		"by user":            {drover.CostFilter{By: drover.CostByUser}, []drover.CostLine{rest, line("ada", "", 2.25, 0, 0, .5)}, nil, all},
		"by all labels":      {drover.CostFilter{By: drover.CostByLabel}, []drover.CostLine{rest, line("is=a,of=greet", "", 1.75, 0, 0, .5), line("is=a,of=last", "", .5, 0, 0, 0)}, nil, all},
		"by one label":       {drover.CostFilter{By: "label:is"}, []drover.CostLine{rest, line("a", "", 2.25, 0, 0, .5)}, nil, all},
		"by a missing label": {drover.CostFilter{By: "label:none"}, []drover.CostLine{all}, nil, all},
		"by cloud":           {drover.CostFilter{By: drover.CostByCloud}, []drover.CostLine{line("here", "", 2.25, 1, 13.25, 2.5)}, nil, all},
		"by type":            {drover.CostFilter{By: drover.CostByType}, []drover.CostLine{line("large", "", 1.75, .5, 9.75, 0), line("small", "", .5, .5, 3.5, 2.5)}, nil, line("", "", 2.25, 1, 13.25, 2.5)},
		"up to the limit":    {drover.CostFilter{By: drover.CostByJob, Limit: 1}, []drover.CostLine{rest}, &drover.CostLine{Jobs: 2.25, Waste: .5, Cost: 2.75}, all},
		"of a period": {drover.CostFilter{By: drover.CostByJob, Since: 5 * hour, Until: 5*hour + hour/2},
			[]drover.CostLine{line("", "", 0, 0, 1.125, 0), line("2", "greet", .25, 0, 0, .125)}, nil, line("", "", .25, 0, 1.125, .125)},
		"of an earlier time": {drover.CostFilter{By: drover.CostByJob, Until: hour}, []drover.CostLine{}, nil, drover.CostLine{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Costs(t.Context(), 8*hour-hour/2, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "lines", got.Lines, c.lines)
			equal(t, "others", got.Others, c.others)
			equal(t, "total", got.Total, c.total)
		})
	}
}

// costFolded has an instance whose prices, one dollar and then three, were folded after two jobs had run, one at each.
func costFolded(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	submitted(t, s)
	folded := func(in *engine.Instance) {
		in.Rates = []drover.Rate{{Since: hour, Until: 5 * hour, Paid: 8 * drover.Dollar}}
	}
	first, last := drover.JobID{Number: 1, Index: -1}, drover.JobID{Number: 2, Index: 1}
	commit(t, s, paidInstance(1, "small", folded),
		paidAttempt(first, 1, 1, drover.AttemptSucceeded, 2*hour, 3*hour, drover.Dollar/4),
		paidAttempt(last, 1, 1, drover.AttemptSucceeded, 3*hour, 5*hour, 6*drover.Dollar/4))
	for until, want := range map[drover.Time][2]float64{6 * hour: {.25, 1.5}, 4 * hour: {.25, .75}} {
		got, err := s.Costs(t.Context(), 6*hour, drover.CostFilter{By: drover.CostByJob, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		costs := map[string]float64{}
		for _, l := range got.Lines {
			costs[l.Key] = l.Jobs
		}
		equal(t, fmt.Sprint("costs until ", until), costs, map[string]float64{"": 0, "1": want[0], "2": want[1]})
	}
}

// costPool has two instances of a pool, one of which was never ready.
func costPool(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	pooled := func(in *engine.Instance) { in.Pool, in.Used = "web", false }
	broken := func(in *engine.Instance) { in.Pool, in.Used, in.Ready = "web", false, 0 }
	commit(t, s, paidInstance(1, "small", pooled), paidInstance(2, "small", broken), goneAt(1, 3*hour), goneAt(2, 2*hour))
	got, err := s.Costs(t.Context(), 8*hour, drover.CostFilter{By: drover.CostByPool})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "lines", got.Lines, []drover.CostLine{{Key: "web", Boot: .5, Idle: 1.5, Waste: 1, Cost: 3}})
}

// costAhead has an instance that is paid for two hours but gone after an hour and a half.
func costAhead(t *testing.T, openers func(testing.TB) opener) {
	s := openers(t)(t)
	commit(t, s, paidInstance(1, "small"), goneAt(1, 3*hour))
	for name, c := range map[string]struct {
		now, since, until drover.Time
		cost              float64
	}{
		"up to now, before the prepaid end": {5 * hour / 2, 0, 0, 2},
		"up to a time before now":           {5 * hour / 2, 0, 2 * hour, 1},
		"from when it was gone":             {7 * hour / 2, 5 * hour / 2, 0, .5},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Costs(t.Context(), c.now, drover.CostFilter{By: drover.CostByCloud, Since: c.since, Until: c.until})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "cost", got.Total.Cost, c.cost)
		})
	}
}

// costSums draws instances and attempts, and a time at which to divide the costs.
func costSums(t *testing.T, openers func(testing.TB) opener) {
	rapid.Check(t, func(rt *rapid.T) {
		s := openers(t)(t)
		defer s.Close()
		submitted(t, s)
		moment := rapid.Map(rapid.Int64Range(1, 1e14), func(n int64) drover.Time { return drover.Time(n) })
		var writes, ends []engine.Write
		tries, now := 0, 200*hour
		for id := range rapid.Int64Range(1, 4).Draw(rt, "instances") {
			writes = append(writes, paidInstance(id+1, "small", func(in *engine.Instance) {
				in.Created, in.Price = moment.Draw(rt, "created"), drover.Money(rapid.Int64Range(0, 1e11).Draw(rt, "price"))
				in.Ready, in.Used = in.Created+moment.Draw(rt, "boot"), rapid.Bool().Draw(rt, "used")
				bill := billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: now, CPU: in.Resources.CPU}
				if rapid.Bool().Draw(rt, "gone") {
					bill.End = in.Created + moment.Draw(rt, "lasted")
					ends = append(ends, goneAt(in.ID, bill.End))
				}
				for range rapid.IntRange(0, 4).Draw(rt, "attempts") {
					tries++
					use := billing.Use{Started: in.Created + moment.Draw(rt, "started"), CPU: 1000}
					use.Ended = use.Started + moment.Draw(rt, "took")
					state := rapid.SampledFrom([]drover.AttemptState{drover.AttemptSucceeded, drover.AttemptLost}).Draw(rt, "state")
					id := drover.JobID{Number: rapid.Int64Range(1, 3).Draw(rt, "job"), Index: tries}
					writes = append(writes, paidAttempt(id, 1, in.ID, state, use.Started, use.Ended, bill.Share(use, use.Started, use.Ended)))
				}
			}))
		}
		commit(t, s, append(writes, ends...)...)
		total := func(since, until drover.Time) drover.Money {
			costs, err := s.Costs(t.Context(), now, drover.CostFilter{By: rapid.SampledFrom(drover.CostsBy()).Draw(rt, "by"), Since: since, Until: until})
			if err != nil {
				rt.Fatal(err)
			}
			var sum float64
			for _, l := range costs.Lines {
				sum += l.Cost
			}
			if sum-costs.Total.Cost > 1e-6 || costs.Total.Cost-sum > 1e-6 {
				rt.Errorf("the lines add up to %v, but the total is %v", sum, costs.Total.Cost)
			}
			return drover.Money(costs.Total.Cost*1e9 + .5)
		}
		steps := func(since drover.Time) {
			f := drover.CostFilter{By: rapid.SampledFrom(drover.CostsBy()).Draw(rt, "by"), Since: since, Limit: rapid.IntRange(1, 3).Draw(rt, "limit")}
			f.Step = time.Duration(rapid.Int64Range(int64(time.Hour), int64(100*time.Hour)).Draw(rt, "step"))
			costs, err := s.Costs(t.Context(), now, f)
			if err != nil {
				rt.Fatal(err)
			}
			sums, others := make([]float64, len(costs.Lines)), 0.0
			for i, step := range costs.Steps {
				if step.Since != since.Add(time.Duration(i)*f.Step) {
					rt.Errorf("step %d begins at %v", i, step.Since)
				}
				for j, cost := range step.Cost {
					sums[j] += cost
				}
				others += step.Other
			}
			want := drover.CostLine{}
			if costs.Others != nil {
				want = *costs.Others
			}
			for i, l := range append(costs.Lines, want) {
				if got := append(sums, others)[i]; got-l.Cost > 1e-6 || l.Cost-got > 1e-6 {
					rt.Errorf("the steps of line %d (%q) add up to %v of %v", i, l.Key, got, l.Cost)
				}
			}
		}
		steps(moment.Draw(rt, "since"))
		cut := moment.Draw(rt, "cut")
		var bills drover.Money
		err := each(t.Context(), s.read, func(row scanner) error {
			var price drover.Money
			var created, gone drover.Time
			err := row.Scan(&price, &created, &gone)
			if gone == 0 {
				gone = now
			}
			bills += price.For(min(gone, now).Sub(created))
			return err
		}, `SELECT price, created, gone FROM instances`)
		if err != nil {
			rt.Fatal(err)
		}
		if whole, parts := total(0, 0), total(0, cut)+total(cut, 0); whole != bills || parts-whole > 1 || whole-parts > 1 {
			rt.Errorf("the bills add up to %d, their parts to %d, and the parts of two periods to %d", bills, whole, parts)
		}
	})
}
