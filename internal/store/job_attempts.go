package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"drover"
	"drover/internal/billing"
)

// addWork adds to listed jobs their attempts (for an array as a whole, only the totals) and their cost up to now. It
// makes a few queries, however many jobs there are.
func addWork(ctx context.Context, tx *sql.Tx, now drover.Time, jobs []drover.Job) error {
	w := work{now: now, jobs: make(map[drover.JobID]*drover.Job, len(jobs))}
	running := false
	for i, j := range jobs {
		w.jobs[j.ID] = &jobs[i]
		if j.Array == nil {
			w.single = append(w.single, [2]int64{j.ID.Number, int64(j.ID.Index)})
			continue
		}
		w.whole = append(w.whole, j.ID.Number)
		running = running || j.Counts[drover.JobRunning] > 0
	}
	if err := w.addAttempts(ctx, tx); err != nil {
		return err
	}
	if err := w.addBills(ctx, tx); err != nil || !running {
		return err
	}
	return w.addLive(ctx, tx)
}

// work is the jobs of a page, by id.
type work struct {
	now    drover.Time
	jobs   map[drover.JobID]*drover.Job
	single [][2]int64 // number and index of jobs that are not arrays as a whole
	whole  []int64    // numbers of arrays as a whole
}

// The joins stay in this order, so that the work is proportional to the requested jobs.
const selectAttempts = `SELECT a.job, a.idx, a.number, i.name, i.market, a.state, a.code, a.reason, a.started, a.ended, a.max_rss, a.cpu,
	a.cost, i.price, i.rates, i.created, i.billed, i.cpu_milli,
	(SELECT o.warnings FROM outputs o WHERE o.job = a.job AND o.idx = a.idx AND o.number = a.number)
	FROM json_each(?) w CROSS JOIN attempts a ON a.job = w.value->>0 AND a.idx = w.value->>1 JOIN instances i ON i.id = a.instance
	ORDER BY a.job, a.idx, a.number`

func (w *work) addAttempts(ctx context.Context, tx *sql.Tx) error {
	if len(w.single) == 0 {
		return nil
	}
	costs := map[drover.JobID]drover.Money{}
	err := each(ctx, tx, func(row scanner) error {
		id, a, s, err := readAttempt(row)
		if err != nil {
			return err
		}
		job := w.jobs[id]
		job.Attempts = append(job.Attempts, a)
		job.Started = &job.Attempts[0].Started
		s.use.CPU = job.Resources.CPU
		costs[id] += s.cost(w.now)
		return nil
	}, selectAttempts, asJSON{w.single})
	for id, cost := range costs {
		w.jobs[id].Cost = cost.USD()
	}
	return err
}

func readAttempt(row scanner) (id drover.JobID, a drover.Attempt, s share, err error) {
	var reason drover.Reason
	var cpu int64
	err = row.Scan(&id.Number, &id.Index, &a.Number, &a.Instance, &a.Market, &a.State, &a.ExitCode, into(&reason), &s.use.Started, &s.use.Ended,
		&a.MaxRSS, &cpu, &s.settled,
		&s.bill.Tariff.Price, into(&s.bill.Tariff.Rates), &s.bill.Created, &s.bill.End, &s.bill.CPU, into(&a.Warnings))
	a.Reason, a.Started, a.Ended, a.CPUSeconds = reasonOf(reason), s.use.Started.Std(), standard(s.use.Ended), float64(cpu)/1e9
	return id, a, s, err
}

func (w *work) addBills(ctx context.Context, tx *sql.Tx) error {
	if len(w.whole) == 0 {
		return nil
	}
	return each(ctx, tx, func(row scanner) error {
		var number int64
		var started drover.Time
		var cost drover.Money
		err := row.Scan(&number, &started, &cost)
		if job := w.jobs[drover.JobID{Number: number, Index: -1}]; job != nil {
			job.Started, job.Cost = standard(started), cost.USD()
		}
		return err
	}, `SELECT job, started, cost FROM bills WHERE job IN (SELECT value FROM json_each(?))`, asJSON{w.whole})
}

// addLive adds the cost of live attempts to arrays as a whole.
func (w *work) addLive(ctx context.Context, tx *sql.Tx) error {
	costs := map[int64]drover.Money{}
	err := eachLive(ctx, tx, func(job int64, s share) {
		if slices.Contains(w.whole, job) {
			costs[job] += s.cost(w.now)
		}
	})
	for number, cost := range costs {
		w.jobs[drover.JobID{Number: number, Index: -1}].Cost += cost.USD()
	}
	return err
}

// eachLive calls do for the live attempts, whose cost is not in their rows yet.
func eachLive(ctx context.Context, from source, do func(job int64, s share)) error {
	return each(ctx, from, func(row scanner) error {
		var s share
		var job int64
		if err := row.Scan(&job, &s.use.Started, &s.bill.Tariff.Price, into(&s.bill.Tariff.Rates), &s.bill.Created, &s.bill.End, &s.use.CPU, &s.bill.CPU); err != nil {
			return err
		}
		do(job, s)
		return nil
	}, `SELECT a.job, a.started, i.price, i.rates, i.created, i.billed, j.cpu_milli, i.cpu_milli FROM attempts a JOIN instances i ON i.id = a.instance
		JOIN jobs j ON j.number = a.job WHERE a.engine IS NOT NULL AND a.ended = 0`)
}

// share is an attempt's share of its instance. The ends of the two are 0 if they are not known.
type share struct {
	use     billing.Use
	bill    billing.Bill
	settled drover.Money // once the attempt ended
}

// cost returns an attempt's cost up to now: until it ends, its share of the instance's vCPUs times the instance's
// price.
func (s share) cost(now drover.Time) drover.Money {
	if s.settled != 0 || s.use.Ended != 0 {
		return s.settled
	}
	s.bill.End, s.use.Ended = cmp.Or(s.bill.End, now), now
	return s.bill.Share(s.use, s.use.Started, now)
}
