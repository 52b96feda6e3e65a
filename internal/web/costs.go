package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"drover"
)

// costPage is the page of costs.
type costPage struct {
	By     string
	Label  string
	Kinds  []drover.CostBy
	Since  string
	Sinces []string
	Costs  *drover.Costs // nil while they are added up
	Taken  time.Time
	Chart  *stack
}

// costLines is how many lines a page of costs has.
const costLines = 30

func (h *Handler) costs(ctx context.Context, r *request) (any, error) {
	q := r.URL.Query()
	p := costPage{By: cmp.Or(q.Get("by"), "user"), Label: q.Get("label"), Since: cmp.Or(q.Get("since"), "24h"), Kinds: drover.CostsBy(), Sinces: []string{"24h", "7d", "30d", "month"}}
	if !h.cfg.Shared && !r.may(drover.RoleOperate) { // labels are private to their users
		p.Kinds = slices.DeleteFunc(p.Kinds, func(by drover.CostBy) bool { return by == drover.CostByLabel })
	}
	if !slices.Contains(p.Sinces, p.Since) { // each name has a sum of its own
		p.Since = p.Sinces[0]
	}
	since, step := stretchOf(p.Since, r.now)
	f := drover.CostFilter{By: drover.CostBy(p.By), Since: drover.TimeOf(since), Limit: costLines, Step: step}
	if p.By == string(drover.CostByLabel) && p.Label != "" {
		f.By = drover.CostBy(p.By + ":" + p.Label)
	}
	sum, err := h.sums.of(r, f, p.Since)
	if err != nil {
		return nil, err
	}
	if sum != nil {
		p.Costs, p.Taken, p.Chart = &sum.costs, sum.taken, stackOf(sum.costs, step)
	}
	return p, nil
}

// stretchOf returns since when, and in which steps, a page shows costs.
func stretchOf(name string, now time.Time) (since time.Time, step time.Duration) {
	const day = 24 * time.Hour
	now = now.UTC()
	switch name {
	case "7d":
		return now.Truncate(6 * time.Hour).Add(6*time.Hour - 7*day), 6 * time.Hour
	case "30d":
		return now.Truncate(day).Add(-29 * day), day
	case "month":
		return startOfMonth(now), day
	}
	return now.Truncate(time.Hour).Add(time.Hour - day), time.Hour
}

// stack is a bar chart over time; each bar consists of the most expensive lines.
type stack struct {
	Bars  []bar
	Names []string // of the series, in the order of their colors
	Top   float64  // the end of the scale
}

type bar struct {
	From, Width float64 // of a thousand
	Pieces      []piece
	Label       string
	Tick        string // a label below the bar, if it has one
}

type piece struct {
	Y, Height float64 // of a hundred
	Series    int
}

// series is how many lines a chart shows separately.
const series = 5

// stackOf draws costs over time.
func stackOf(costs drover.Costs, step time.Duration) *stack {
	s := &stack{}
	shown := min(series, len(costs.Lines))
	for _, l := range costs.Lines[:shown] {
		s.Names = append(s.Names, keyOf(l, costs.By))
	}
	rest := false
	for _, st := range costs.Steps {
		s.Top = max(s.Top, total(st))
		rest = rest || st.Other > 0 || slices.ContainsFunc(st.Cost[shown:], func(v float64) bool { return v > 0 })
	}
	if s.Top == 0 {
		return nil
	}
	if rest {
		s.Names = append(s.Names, "all others")
	}
	width := 1000 / float64(len(costs.Steps))
	for i, st := range costs.Steps {
		b := bar{From: float64(i)*width + width*.1, Width: width * .8, Label: label(st, step) + ": " + usd(total(st))}
		if i%max(1, len(costs.Steps)/6) == 0 && b.From < 920 { // a label further right would not fit
			b.Tick = label(st, step)
		}
		y := 100.0
		for j, v := range append(slices.Clone(st.Cost[:shown]), total(st)-summed(st.Cost[:shown])) {
			if height := v / s.Top * 100; height > 0 {
				y -= height
				b.Pieces = append(b.Pieces, piece{y, height, j})
			}
		}
		s.Bars = append(s.Bars, b)
	}
	return s
}

func total(st drover.CostStep) float64 { return summed(st.Cost) + st.Other }

func summed(all []float64) (n float64) {
	for _, v := range all {
		n += v
	}
	return n
}

func label(st drover.CostStep, step time.Duration) string {
	if step < 24*time.Hour {
		return st.Since.Std().Format("Jan 2 15:04")
	}
	return st.Since.Std().Format("Jan 2")
}

// keyOf returns the name of a line.
func keyOf(l drover.CostLine, by drover.CostBy) string {
	switch {
	case l.Name != "":
		return l.Name + " (" + l.Key + ")"
	case l.Key == "":
		return "no " + string(by)
	}
	return l.Key
}
