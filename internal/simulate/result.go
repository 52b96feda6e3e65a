package simulate

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/trace"
)

// Result is the result of a simulation, as programs read it.
type Result struct {
	Configuration string       `json:"configuration,omitempty"`
	Policy        Policy       `json:"policy"`
	Jobs          int          `json:"jobs"` // elements of arrays included
	Done          int          `json:"done"`
	Failed        int          `json:"failed"`
	Refused       int          `json:"refused"`                  // jobs that no offering could ever hold
	WhyRefused    string       `json:"why_refused,omitempty"`    // the reason for the first of them
	Unfinished    int          `json:"unfinished"`               // jobs that would never have ended
	WhyUnfinished string       `json:"why_unfinished,omitempty"` // why Drover does not end the first of them
	LeftOut       []trace.Left `json:"left_out"`                 // jobs of the trace that were not simulated
	Wait          Waits        `json:"wait_seconds"`
	Makespan      float64      `json:"makespan_seconds"`
	Instances     int          `json:"instances"`
	Peak          int          `json:"peak_instances"`
	Hours         float64      `json:"instance_hours"`
	Lost          int          `json:"attempts_interrupted"`
	Markets       []Market     `json:"markets"`
	Cost          float64      `json:"cost_usd"`
	Parts         Parts        `json:"cost_usd_parts"`
	Utilisation   float64      `json:"utilisation"`                 // the share of paid vCPUs used by jobs that ended
	Saved         *float64     `json:"waiting_saves_usd,omitempty"` // how much more it would cost if no job waited for room that is already paid for
	Bound         float64      `json:"bound_usd"`                   // 0: unknown, since some jobs did not end
	Ratio         float64      `json:"ratio"`                       // cost divided by bound; 0: no bound is known
	Prompt        float64      `json:"prompt_bound_usd"`            // bound, plus the minimum of boots with which no job waits longer than the longest wait here
	Pools         []Pool       `json:"pools,omitempty"`

	Begin  drover.Time  `json:"begin"`
	Money  drover.Money `json:"-"` // the exact Cost
	Points []Point      `json:"-"`
}

// Waits are the times from jobs' submission to their first start.
type Waits struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Market sums up the instances of one market.
type Market struct {
	Market      drover.Market `json:"market"`
	Instances   int           `json:"instances"`
	Hours       float64       `json:"instance_hours"`
	Cost        float64       `json:"cost_usd"`
	Interrupted int           `json:"interrupted"` // by their cloud
}

// Point is a period of a simulation: averages over it, and the money spent until its end.
type Point struct {
	From, To  time.Duration // since the beginning
	Instances float64
	Queued    float64
	Used      float64 // vCPUs
	Rented    float64 // vCPUs
	Spent     float64 // USD
}

// misfit says why no offering can ever hold a job, for the first such job of the trace; empty if there is none.
func (in Input) misfit() string {
	for i, t := range in.Trace.Jobs {
		if why := in.shape(t).NearestMiss(in.Offerings); why != "" {
			return in.about(i) + why
		}
	}
	return ""
}

// about introduces a statement about a job of the trace.
func (in Input) about(i int) string {
	return fmt.Sprintf("job %d of the trace, submitted %v after the trace begins: ", i+1, in.Trace.Jobs[i].Submit.Round(time.Second))
}

func (m *meter) result(in Input, p Policy) *Result {
	r := &Result{
		Policy: p, Begin: m.begin, Done: m.done, Failed: m.failed, Refused: m.refused, LeftOut: append([]trace.Left{}, in.Trace.Left...), Wait: Summarize(m.waits),
		Instances: m.instances, Peak: m.peak, Lost: m.lost, Markets: []Market{},
		WhyUnfinished: m.stuck, Points: m.series.points(m.now.Sub(m.begin)),
	}
	for _, j := range in.Trace.Jobs {
		r.Jobs += j.Count
	}
	if r.Done > 0 {
		r.Makespan = m.end.Sub(m.begin.Add(in.Trace.Jobs[0].Submit)).Seconds()
	}
	if r.Unfinished = r.Jobs - r.Done - r.Failed - r.Refused; r.Refused > 0 {
		r.WhyRefused = in.misfit()
	}
	for _, market := range []drover.Market{drover.OnDemand, drover.Spot} {
		if b := m.bills[market]; b != nil {
			r.Markets = append(r.Markets, Market{market, b.instances, b.time.Hours(), b.cost.USD(), b.interrupted})
			r.Money += b.cost
			r.Hours += b.time.Hours()
		}
	}
	r.Cost, r.Parts = r.Money.USD(), m.parts
	if m.had > 0 {
		r.Utilisation = m.used / m.had
	}
	full, rates := bound(in.work(), in.cheapest(m.now.Sub(m.begin)))
	if r.Done < in.possible(rates) { // what did not run cost nothing either
		return r
	}
	if r.Bound = full; r.Bound > 0 {
		r.Ratio = r.Cost / r.Bound
		r.Prompt = full + in.turns(rates, time.Duration(r.Wait.Max*float64(time.Second)), in.Models.quickest(max(r.Jobs, r.Instances)))
	}
	return r
}

// possible returns the number of jobs that some offering can hold; rates has the shapes of these.
func (in Input) possible(rates map[drover.Shape]float64) (n int) {
	for _, j := range in.Trace.Jobs {
		if _, fits := rates[in.shape(j)]; fits {
			n += j.Count
		}
	}
	return n
}

// work returns the total run time of each shape.
func (in Input) work() (all []chunk) {
	at := map[drover.Shape]int{}
	for _, j := range in.Trace.Jobs {
		s := in.shape(j)
		i, known := at[s]
		if !known {
			i, at[s] = len(all), len(all)
			all = append(all, chunk{shape: s})
		}
		all[i].seconds += j.Runtime.Seconds() * float64(j.Count)
	}
	return all
}

// cheapest returns the offerings, each with its lowest price during a simulation that took so long, as if reservations
// were unlimited.
func (in Input) cheapest(took time.Duration) []drover.Offering {
	least := slices.Clone(in.Offerings)
	k := newMarket(in.Models, in.Offerings)
	for age := priceStep; age <= took; age += priceStep {
		k.step()
		for i := range least {
			least[i].Price = min(least[i].Price, k.offerings[i].Price)
		}
	}
	for _, c := range in.Settings.Clouds {
		for _, r := range c.Reserved {
			for i, o := range least {
				if o.Cloud == c.Name && covers(r, o) {
					least[i].Price = min(o.Price, r.Price)
				}
			}
		}
	}
	return least
}

// Summarize sums up waits, which it sorts.
func Summarize(waits []time.Duration) (s Waits) {
	if len(waits) == 0 {
		return s
	}
	slices.Sort(waits)
	sum := 0.0
	for _, w := range waits {
		sum += w.Seconds()
	}
	// The q-quantile is the smallest wait that a share q of the jobs does not exceed.
	quantile := func(percent int) float64 { return waits[(len(waits)*percent+99)/100-1].Seconds() }
	return Waits{Mean: sum / float64(len(waits)), P50: quantile(50), P95: quantile(95), P99: quantile(99), Max: waits[len(waits)-1].Seconds()}
}

// points returns the periods of a series that ended at this time.
func (s series) points(end time.Duration) (list []Point) {
	spent := 0.0
	for i, b := range s.bins {
		from := s.width * time.Duration(i)
		to := min(end, from+s.width)
		seconds := (to - from).Seconds()
		spent += b.hourly / 3600
		list = append(list, Point{
			From: from, To: to, Instances: b.instances / seconds, Queued: b.queued / seconds, Used: b.used / seconds, Rented: b.had / seconds, Spent: spent,
		})
	}
	return list
}
