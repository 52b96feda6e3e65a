package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"drover"
	"drover/internal/ledger"
)

// Costs says what money was for. Nothing is kept for it: it is made up from the lifetimes of instances and attempts, those that go on counting
// up to now, so any stretch of time can be asked about. The work is that of what ended since the stretch began.
func (s *Store) Costs(ctx context.Context, now drover.Time, f drover.CostFilter) (costs drover.Costs, err error) {
	open := f.Until == 0 || f.Until >= now
	if open {
		f.Until = now
	}
	if f.Limit <= 0 || f.Limit > drover.MaxPage {
		f.Limit = drover.MaxPage
	}
	err = s.look(ctx, "adding up costs", func(tx *sql.Tx) error {
		b := books{now: now, filter: f, ahead: open, open: map[int64]*entry{}, sums: map[string]ledger.Parts{}}
		if err := b.openAccounts(ctx, tx); err != nil {
			return err
		}
		if err := b.charge(ctx, tx); err != nil {
			return err
		}
		b.close()
		costs, err = b.report(ctx, tx)
		return err
	})
	return costs, err
}

// books is the adding up of costs.
type books struct {
	now    drover.Time
	filter drover.CostFilter
	ahead  bool                    // what is paid already for the time from now on counts
	open   map[int64]*entry        // by instance
	sums   map[string]ledger.Parts // by what is told apart; by a job's number where that is by what jobs are
}

// entry is an instance whose cost is divided up.
type entry struct {
	account *ledger.Account
	key     string // of what is told apart by what instances are
}

// ofJobs reports whether money is told apart by what jobs are, and not instances.
func (b *books) ofJobs() bool {
	switch b.filter.By {
	case drover.CostByPool, drover.CostByCloud, drover.CostByType:
		return false
	}
	return true
}

// openAccounts begins to divide up what instances cost that were there in the stretch.
func (b *books) openAccounts(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(row scanner) error {
		var id int64
		var bill ledger.Bill
		var billed, gone drover.Time
		var cloud, kind string
		var used bool
		err := row.Scan(&id, &bill.Tariff.Price, into(&bill.Tariff.Rates), &bill.Created, &bill.Ready, &billed, &gone, &bill.CPU, &used, &cloud, &kind)
		bill.End, bill.Unused = cmp.Or(billed, b.now), gone != 0 && !used
		key := ""
		switch b.filter.By {
		case drover.CostByCloud:
			key = cloud
		case drover.CostByType:
			key = kind
		}
		until := b.filter.Until
		if b.ahead {
			until = max(until, bill.End)
		}
		b.open[id] = &entry{bill.Open(b.filter.Since, until), key}
		return err
	}, `SELECT id, price, rates, created, ready, billed, gone, cpu_milli, used, cloud, type FROM instances
		WHERE created <> 0 AND created < ?1 AND (gone > 0 AND gone > ?2 OR engine IS NOT NULL)`, b.filter.Until, b.filter.Since)
}

// attemptsIn are the attempts of a stretch of time, those that have not ended among them.
const attemptsIn = `SELECT a.job, a.instance, a.started, a.ended, a.state, j.cpu_milli FROM (
		SELECT job, instance, started, ended, state FROM attempts WHERE ended > 0 AND ended > ?2
		UNION ALL SELECT job, instance, started, ended, state FROM attempts WHERE engine IS NOT NULL AND ended = 0
	) a JOIN jobs j ON j.number = a.job WHERE a.started < ?1`

// charge has each attempt pay what it had.
func (b *books) charge(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(row scanner) error {
		var job, instance int64
		var use ledger.Use
		var state drover.AttemptState
		if err := row.Scan(&job, &instance, &use.Started, &use.Ended, &state, &use.CPU); err != nil {
			return err
		}
		use.Ended = cmp.Or(use.Ended, b.now)
		use.Lost = state == drover.AttemptLost || state == drover.AttemptInterrupted
		in := b.open[instance]
		if in == nil {
			return nil // its bill never began, or had ended before
		}
		key := in.key
		if b.ofJobs() {
			key = strconv.FormatInt(job, 10)
		}
		b.add(key, in.account.Charge(use))
		return nil
	}, attemptsIn, b.filter.Until, b.filter.Since)
}

// close books what no attempt had.
func (b *books) close() {
	for _, in := range b.open {
		b.add(in.key, in.account.Rest())
	}
}

func (b *books) add(key string, p ledger.Parts) {
	if p != (ledger.Parts{}) {
		b.sums[key] = b.sums[key].Plus(p)
	}
}

// costLine is a line before it is shown.
type costLine struct {
	key, name string
	parts     ledger.Parts
}

// report makes lines of the sums.
func (b *books) report(ctx context.Context, tx *sql.Tx) (drover.Costs, error) {
	costs := drover.Costs{By: b.filter.By, Since: b.filter.Since, Until: b.filter.Until, Lines: []drover.CostLine{}}
	lines, err := b.lines(ctx, tx)
	if err != nil {
		return costs, err
	}
	slices.SortFunc(lines, func(x, y costLine) int {
		return cmp.Or(cmp.Compare(y.parts.Sum(), x.parts.Sum()), cmp.Compare(x.key, y.key))
	})
	var total, others ledger.Parts
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
	return costs, nil
}

func (l costLine) shown() drover.CostLine {
	p := l.parts
	return drover.CostLine{
		Key: l.key, Name: l.name, Jobs: p.Jobs.USD(), Boot: p.Boot.USD(), Idle: p.Idle.USD(), Waste: p.Waste.USD(), Cost: p.Sum().USD(),
	}
}

// lines are the sums by what is told apart.
func (b *books) lines(ctx context.Context, tx *sql.Tx) (lines []costLine, err error) {
	names := map[string]jobNames{}
	if b.ofJobs() {
		if names, err = b.nameJobs(ctx, tx); err != nil {
			return nil, err
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
	return lines, nil
}

// jobNames is what a job is told apart by, and what it is called.
type jobNames struct{ key, name string }

// How the key of a job is found, by what jobs are told apart.
const (
	byNumber    = `SELECT number, CAST(number AS TEXT), name FROM jobs j`
	byUser      = `SELECT number, user_name, '' FROM jobs j`
	byLabel     = `SELECT number, coalesce((SELECT value FROM labels WHERE label = ?2 AND job = number), ''), '' FROM jobs j`
	byAllLabels = `SELECT number, coalesce((SELECT group_concat(key || '=' || value, ',') FROM json_each(j.spec, '$.labels')), ''), '' FROM jobs j`
	theseJobs   = ` WHERE number IN (SELECT value FROM json_each(?1))`
)

// nameJobs finds the keys of the jobs in the sums.
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
		asked, err := text(page)
		if err != nil {
			return nil, err
		}
		query, args := byNumber, []any{asked}
		switch by := b.filter.By; {
		case by == drover.CostByUser:
			query = byUser
		case by == drover.CostByLabel:
			query = byAllLabels
		case by.Label() != "":
			query, args = byLabel, append(args, by.Label())
		}
		err = each(ctx, tx, func(row scanner) error {
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
