package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"drover"
	"drover/internal/billing"
)

// Costs returns what money was spent on, in any period. It is computed from the lifetimes of instances and
// attempts, where unfinished ones count up to now. The work is proportional to what ended since the period began.
func (s *Store) Costs(ctx context.Context, now drover.Time, f drover.CostFilter) (costs drover.Costs, err error) {
	open := f.Until == 0 || f.Until >= now
	if open {
		f.Until = now
	}
	if f.Limit <= 0 || f.Limit > drover.MaxPage {
		f.Limit = drover.MaxPage
	}
	err = s.look(ctx, "adding up costs", func(tx *sql.Tx) error {
		all := newAllBooks(now, f, open)
		if err := all.openAccounts(ctx, tx); err != nil {
			return err
		}
		if err := all.charge(ctx, tx); err != nil {
			return err
		}
		for _, b := range all {
			b.close()
		}
		costs, err = all.report(ctx, tx)
		return err
	})
	return costs, err
}

// allBooks are the books of a period followed by those of its steps.
type allBooks []*books

func newAllBooks(now drover.Time, f drover.CostFilter, open bool) allBooks {
	all := allBooks{newBooks(now, f, open)}
	for from := f.Since; f.Step > 0 && from < f.Until && len(all) <= drover.MaxCostSteps; from = from.Add(f.Step) {
		step := f
		step.Since, step.Until = from, min(from.Add(f.Step), f.Until)
		all = append(all, newBooks(now, step, open && step.Until == f.Until))
	}
	return all
}

func newBooks(now drover.Time, f drover.CostFilter, open bool) *books {
	return &books{now: now, filter: f, ahead: open, open: map[int64]*entry{}, sums: map[string]billing.Parts{}}
}

// during returns the books that overlap a period.
func (all allBooks) during(from, to drover.Time) (some allBooks) {
	step := all[0].filter.Step
	if step == 0 || len(all) == 1 {
		return all
	}
	since, last := all[0].filter.Since, len(all)-2
	first := min(last, max(0, int(from.Sub(since)/step)))
	final := min(last, max(0, int(to.Sub(since)/step)))
	return append(allBooks{all[0]}, all[1+first:2+final]...)
}

// report turns the sums into lines, each step with its share.
func (all allBooks) report(ctx context.Context, tx *sql.Tx) (drover.Costs, error) {
	whole := all[0]
	lines, names, err := whole.lines(ctx, tx)
	if err != nil {
		return drover.Costs{}, err
	}
	costs := whole.report(lines)
	at := map[string]int{}
	for i, l := range costs.Lines {
		at[l.Key] = i
	}
	for _, b := range all[1:] {
		costs.Steps = append(costs.Steps, b.step(at, names))
	}
	return costs, nil
}

// step returns the cost of each line in one step of time, by the line's position.
func (b *books) step(at map[string]int, names map[string]jobNames) drover.CostStep {
	sums, others := make([]drover.Money, len(at)), drover.Money(0)
	for key, parts := range b.sums {
		if name, named := names[key]; named {
			key = name.key
		}
		if i, shown := at[key]; shown {
			sums[i] += parts.Sum()
		} else {
			others += parts.Sum()
		}
	}
	step := drover.CostStep{Since: b.filter.Since, Until: b.filter.Until, Cost: []float64{}, Other: others.USD()}
	for _, sum := range sums {
		step.Cost = append(step.Cost, sum.USD())
	}
	return step
}

// books add up costs.
type books struct {
	now    drover.Time
	filter drover.CostFilter
	ahead  bool                     // count what is already paid for the time from now on
	open   map[int64]*entry         // by instance
	sums   map[string]billing.Parts // by group; by a job's number if jobs are grouped
}

// entry is an instance whose cost is divided.
type entry struct {
	account *billing.Account
	key     string // its group, if instances are grouped
}

// ofJobs reports whether costs are grouped by properties of jobs, not of instances.
func (b *books) ofJobs() bool {
	switch b.filter.By {
	case drover.CostByPool, drover.CostByCloud, drover.CostByType:
		return false
	}
	return true
}

// openAccounts prepares to divide the cost of the instances that existed in the period.
func (all allBooks) openAccounts(ctx context.Context, tx *sql.Tx) error {
	return eachBill(ctx, tx, all[0].now, all[0].filter.Since, func(in rented) {
		if in.bill.Created >= all[0].filter.Until {
			return
		}
		for _, b := range all.during(in.bill.Created, in.bill.End) {
			b.openAccount(in)
		}
	})
}

// rented is an instance whose bill has begun.
type rented struct {
	id                int64
	bill              billing.Bill
	gone              bool
	cloud, kind, pool string
}

// billsSince selects the instances that cost money since a time.
const billsSince = `SELECT id, price, rates, created, ready, billed, gone <> 0, cpu_milli, used, cloud, type, pool FROM instances WHERE created <> 0
	AND id IN (SELECT id FROM instances WHERE gone > 0 AND gone > ? UNION ALL SELECT id FROM instances WHERE engine IS NOT NULL)`

func eachBill(ctx context.Context, tx *sql.Tx, now, since drover.Time, do func(rented)) error {
	return each(ctx, tx, func(row scanner) error {
		var in rented
		var used bool
		b := &in.bill
		err := row.Scan(&in.id, &b.Tariff.Price, into(&b.Tariff.Rates), &b.Created, &b.Ready, &b.End, &in.gone, &b.CPU, &used, &in.cloud, &in.kind, &in.pool)
		if err != nil {
			return err
		}
		served := in.pool != "" && b.Ready != 0
		b.End, b.Unused = cmp.Or(b.End, now), in.gone && !used && !served
		do(in)
		return nil
	}, billsSince, since)
}

func (b *books) openAccount(in rented) {
	key := ""
	switch b.filter.By {
	case drover.CostByCloud:
		key = in.cloud
	case drover.CostByType:
		key = in.kind
	case drover.CostByPool:
		key = in.pool
	}
	until := b.filter.Until
	if b.ahead {
		until = max(until, in.bill.End)
	}
	b.open[in.id] = &entry{in.bill.Open(b.filter.Since, until), key}
}

// attemptsIn selects the attempts of a period, including unfinished ones.
const attemptsIn = `SELECT a.job, a.instance, a.started, a.ended, a.cost, a.state, j.cpu_milli FROM (
		SELECT job, instance, started, ended, cost, state FROM attempts WHERE ended > 0 AND ended > ?2
		UNION ALL SELECT job, instance, started, ended, cost, state FROM attempts WHERE engine IS NOT NULL AND ended = 0
	) a JOIN jobs j ON j.number = a.job WHERE a.started < ?1`

// charge assigns each attempt its share.
func (all allBooks) charge(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(row scanner) error {
		var job, instance int64
		var use billing.Use
		var state drover.AttemptState
		if err := row.Scan(&job, &instance, &use.Started, &use.Ended, &use.Cost, &state, &use.CPU); err != nil {
			return err
		}
		use.Settled = use.Ended != 0
		use.Ended = cmp.Or(use.Ended, all[0].now)
		use.Lost = state == drover.AttemptLost || state == drover.AttemptInterrupted
		for _, b := range all.during(use.Started, use.Ended) {
			b.chargeOne(job, instance, use)
		}
		return nil
	}, attemptsIn, all[0].filter.Until, all[0].filter.Since)
}

func (b *books) chargeOne(job, instance int64, use billing.Use) {
	in := b.open[instance]
	if in == nil {
		return // its bill never began, or had ended before
	}
	key := in.key
	if b.ofJobs() {
		key = strconv.FormatInt(job, 10)
	}
	b.add(key, in.account.Charge(use))
}

// close assigns the cost that no attempt caused.
func (b *books) close() {
	for _, in := range b.open {
		b.add(in.key, in.account.Rest())
	}
}

func (b *books) add(key string, p billing.Parts) {
	if p != (billing.Parts{}) {
		b.sums[key] = b.sums[key].Plus(p)
	}
}

// costLine is a line before it is shown.
type costLine struct {
	key, name string
	parts     billing.Parts
}

// report sorts the lines, cuts them off at the limit, and adds them up.
func (b *books) report(lines []costLine) drover.Costs {
	costs := drover.Costs{By: b.filter.By, Since: b.filter.Since, Until: b.filter.Until, Lines: []drover.CostLine{}}
	slices.SortFunc(lines, func(x, y costLine) int {
		return cmp.Or(cmp.Compare(y.parts.Sum(), x.parts.Sum()), cmp.Compare(x.key, y.key))
	})
	var total, others billing.Parts
	for i, l := range lines {
		total = total.Plus(l.parts)
		if i < b.filter.Limit {
			costs.Lines = append(costs.Lines, l.shown())
		} else {
			others = others.Plus(l.parts)
		}
	}
	costs.Total = costLine{parts: total}.shown()
	if len(lines) > b.filter.Limit {
		rest := costLine{parts: others}.shown()
		costs.Others = &rest
	}
	return costs
}

func (l costLine) shown() drover.CostLine {
	p := l.parts
	return drover.CostLine{
		Key: l.key, Name: l.name, Jobs: p.Jobs.USD(), Boot: p.Boot.USD(), Idle: p.Idle.USD(), Waste: p.Waste.USD(), Cost: p.Sum().USD(),
	}
}

// lines returns the sums by group, with the jobs' names.
func (b *books) lines(ctx context.Context, tx *sql.Tx) (lines []costLine, names map[string]jobNames, err error) {
	if b.ofJobs() {
		if names, err = b.nameJobs(ctx, tx); err != nil {
			return nil, nil, err
		}
	}
	at := map[string]int{}
	for key, parts := range b.sums {
		name, named := names[key]
		if !named {
			name.key = key
		}
		if i, known := at[name.key]; known {
			lines[i].parts = lines[i].parts.Plus(parts)
			continue
		}
		at[name.key] = len(lines)
		lines = append(lines, costLine{name.key, name.name, parts})
	}
	return lines, names, nil
}

// jobNames is the group that a job belongs to, and its name.
type jobNames struct{ key, name string }

// Queries for the keys of jobs, by their grouping.
const (
	byNumber    = `SELECT number, CAST(number AS TEXT), name FROM jobs j`
	byUser      = `SELECT number, user_name, '' FROM jobs j`
	byLabel     = `SELECT number, coalesce((SELECT value FROM labels WHERE label = ?2 AND job = number), ''), '' FROM jobs j`
	byAllLabels = `SELECT number, coalesce((SELECT group_concat(key || '=' || value, ',') FROM json_each(j.spec, '$.labels')), ''), '' FROM jobs j`
	theseJobs   = ` WHERE number IN (SELECT value FROM json_each(?1))`
)

// nameJobs finds the groups of the jobs in the sums.
func (b *books) nameJobs(ctx context.Context, tx *sql.Tx) (map[string]jobNames, error) {
	numbers := []int64{}
	for key := range b.sums {
		if n, err := strconv.ParseInt(key, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	names := make(map[string]jobNames, len(numbers))
	for page := range slices.Chunk(numbers, pageSize*16) {
		query, args := byNumber, []any{asJSON{page}}
		switch by := b.filter.By; {
		case by == drover.CostByUser:
			query = byUser
		case by == drover.CostByLabel:
			query = byAllLabels
		case by.Label() != "":
			query, args = byLabel, append(args, by.Label())
		}
		err := each(ctx, tx, func(row scanner) error {
			var number string
			var n jobNames
			err := row.Scan(&number, &n.key, &n.name)
			names[number] = n
			return err
		}, query+theseJobs, args...)
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}
