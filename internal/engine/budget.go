package engine

import (
	"cmp"
	"slices"
	"strings"

	"drover"
)

// Budget limits what may be spent in each hour, day and month of the UTC calendar (BEHAVIOUR D24): by the fleet, or on the jobs of a user or with
// a label. The fleet's counts what instances cost; the others what attempts have of them.
type Budget struct {
	User  string  `json:"user,omitempty"`
	Label string  `json:"label,omitempty"` // NAME=VALUE
	Hard  Amounts `json:"hard"`            // that no decision passes
	Soft  Amounts `json:"soft"`            // that are told of when they are passed
	Stop  bool    `json:"stop,omitempty"`  // once a hard one is passed nevertheless, what runs is stopped and waits
}

// Amounts are limits, one for each window; 0 is none.
type Amounts struct {
	Hourly  drover.Money `json:"hourly,omitempty"`
	Daily   drover.Money `json:"daily,omitempty"`
	Monthly drover.Money `json:"monthly,omitempty"`
}

func (a Amounts) of(w window) drover.Money {
	return [windows]drover.Money{a.Hourly, a.Daily, a.Monthly}[w]
}

// Scope says whose money it is, and is unique among budgets.
func (b Budget) Scope() string {
	switch {
	case b.User != "":
		return "user " + b.User
	case b.Label != "":
		return "label " + b.Label
	}
	return "fleet"
}

// ofFleet reports whether the budget is everybody's.
func (b *Budget) ofFleet() bool { return b.User == "" && b.Label == "" }

// covers reports whether the budget is that of the group's jobs.
func (b *Budget) covers(key GroupKey) bool {
	return b.ofFleet() || b.User != "" && b.User == key.User || b.Label != "" && key.labelled(b.Label)
}

// labelled reports whether a label is among the group's that matter.
func (key GroupKey) labelled(label string) bool {
	for line := range strings.SplitSeq(key.Labels, "\n") {
		if line == label {
			return true
		}
	}
	return false
}

// Spending is what was spent in a budget's name by what is over: by instances that are gone, or attempts that are final.
type Spending struct {
	Scope   string         `json:"scope"`
	Spells  [windows]Spell `json:"spells"`
	Dropped bool           `json:"dropped,omitempty"` // there is no such budget any more
}

// Spell is what was spent in the present window.
type Spell struct {
	Begin  drover.Time  `json:"begin"`
	Cost   drover.Money `json:"cost"`
	Next   drover.Money `json:"next,omitempty"`   // of the window after it, which begins with that: what is over may be paid until then
	Warned bool         `json:"warned,omitempty"` // that the soft limit is passed was told
	Passed bool         `json:"passed,omitempty"` // and of the hard one
	Told   drover.Time  `json:"told,omitempty"`   // when the last of these was
}

// spending is what was spent in a scope; nil if nobody counts it.
func (e *Engine) spending(scope string) *Spending {
	at, ok := slices.BinarySearchFunc(e.s.Spending, scope, func(s Spending, scope string) int { return cmp.Compare(s.Scope, scope) })
	if !ok {
		return nil
	}
	return &e.s.Spending[at]
}

// NewSpending is the count of a budget that has spent nothing in the windows of a moment.
func NewSpending(b Budget, now drover.Time) Spending {
	s := Spending{Scope: b.Scope()}
	s.turn(now)
	return s
}

// Since is when the longest of the windows began.
func (s *Spending) Since() drover.Time { return s.Spells[monthly].Begin }

// Add counts what is over: cost is what it costs in a stretch of time.
func (s *Spending) Add(cost func(from, to drover.Time) drover.Money) {
	for w := range s.Spells {
		spell := &s.Spells[w]
		next := window(w).end(spell.Begin)
		spell.Cost += cost(spell.Begin, next)
		spell.Next += cost(next, window(w).end(next))
	}
}

// beginAnew begins the present windows when those before have ended, and tries again what waits for money; also if what it waits for has come since a time.
func (e *Engine) beginAnew(was drover.Time) {
	if len(e.s.Settings.Budgets) == 0 {
		return
	}
	for _, g := range e.groups {
		if at := g.retryAt(); at > was && at <= e.s.Now {
			e.replace, e.replan = true, true
		}
	}
	if e.s.Now < e.turn {
		return
	}
	e.turn = hourly.end(hourly.begin(e.s.Now)) // at which days and months end as well
	e.replace, e.replan = true, true
	for i := range e.s.Spending {
		if s := &e.s.Spending[i]; s.turn(e.s.Now) {
			e.writeSpending(s)
		}
	}
	e.rollover()
}

// turn brings the windows up to now, and reports whether that changed any.
func (s *Spending) turn(now drover.Time) (changed bool) {
	for w := range s.Spells {
		begin, was := window(w).begin(now), s.Spells[w]
		if was.Begin >= begin {
			continue
		}
		paid := drover.Money(0) // before it began
		if window(w).end(was.Begin) == begin {
			paid = was.Next
		}
		s.Spells[w], changed = Spell{Begin: begin, Cost: paid}, true
	}
	return changed
}

func (e *Engine) writeSpending(s *Spending) {
	c := *s
	e.write(Write{Spending: &c})
}

// keepCount begins and ends to count for the budgets that are now configured. What was spent before one was is given.
func (e *Engine) keepCount(past []Spending) {
	var kept []Spending
	for _, b := range e.s.Settings.Budgets {
		if s := e.spending(b.Scope()); s != nil {
			if s.turn(e.s.Now) { // no controller was there when its windows ended
				e.writeSpending(s)
			}
			kept = append(kept, *s)
			continue
		}
		s := Spending{Scope: b.Scope()}
		if at := slices.IndexFunc(past, func(p Spending) bool { return p.Scope == s.Scope }); at >= 0 {
			s.Spells = past[at].Spells
		}
		s.turn(e.s.Now)
		kept = append(kept, s)
		e.writeSpending(&s)
	}
	for _, s := range e.s.Spending {
		if !slices.ContainsFunc(kept, func(k Spending) bool { return k.Scope == s.Scope }) {
			e.write(Write{Spending: &Spending{Scope: s.Scope, Dropped: true}})
		}
	}
	e.turn = hourly.end(hourly.begin(e.s.Now))
	slices.SortFunc(kept, func(a, b Spending) int { return cmp.Compare(a.Scope, b.Scope) })
	e.s.Spending, e.books = kept, nil
}

// tally adds what is over to the budgets it is of: cost is what it cost in a stretch of time.
func (e *Engine) tally(of func(*Budget) bool, cost func(from, to drover.Time) drover.Money) {
	for i := range e.s.Settings.Budgets {
		b := &e.s.Settings.Budgets[i]
		s := e.spending(b.Scope())
		if s == nil || !of(b) {
			continue
		}
		before := s.Spells
		if s.Add(cost); s.Spells != before {
			e.writeSpending(s)
		}
	}
}

// settleInstance counts an instance that is gone.
func (e *Engine) settleInstance(in *instance) {
	if in.Created == 0 {
		return
	}
	bill := e.bill(in)
	e.tally((*Budget).ofFleet, func(from, to drover.Time) drover.Money { return bill.Cost(from, to) })
}

// unsettleInstance takes that back, since the instance is there after all.
func (e *Engine) unsettleInstance(in *instance) {
	if in.Created == 0 {
		return
	}
	bill := e.bill(in)
	e.tally((*Budget).ofFleet, func(from, to drover.Time) drover.Money { return -bill.Cost(from, to) })
}

// settleAttempt counts an attempt that is final.
func (e *Engine) settleAttempt(a *Attempt) {
	if len(e.s.Settings.Budgets) == 0 {
		return
	}
	in, j := e.instance(a.Instance), e.job(a.ID.Job.Number)
	bill, use, key := e.bill(in), useOf(a, j), e.keyOf(j)
	e.tally(func(b *Budget) bool { return !b.ofFleet() && b.covers(key) }, func(from, to drover.Time) drover.Money { return bill.Share(use, from, to) })
}

// labels are the names of the labels that budgets and shares speak of, sorted.
func (s Settings) labels() (names []string) {
	if name := s.Shares.By.Label(); name != "" {
		names = append(names, name)
	}
	for _, b := range s.Budgets {
		if name, _, ok := strings.Cut(b.Label, "="); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// relabel puts jobs in their groups anew if other labels matter now.
func (e *Engine) relabel() {
	names := e.s.Settings.labels()
	if slices.Equal(names, e.labels) {
		return
	}
	for j := range e.jobs.all() {
		e.ungroup(j)
	}
	e.labels = names
	for j := range e.jobs.all() {
		e.regroup(j)
	}
}

// keyOf names the group that the job's waiting elements are in, but for those that have more memory.
func (e *Engine) keyOf(j *Job) GroupKey {
	key := GroupKey{Shape: j.Shape, Priority: j.Priority, User: j.User, Timeout: j.Timeout, Expected: step(j.Expected), Gang: j.Gang}
	for _, name := range e.labels {
		if value, has := j.Labels[name]; has {
			if key.Labels != "" {
				key.Labels += "\n"
			}
			key.Labels += name + "=" + value
		}
	}
	return key
}
