package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine"
)

const (
	putJob = `UPDATE jobs SET taken = TRUE, priority = ?, state = ?, queued = ?, succeeded = ?, failed = ?, cancelled = ?, reason = ?,
		engine = ? WHERE number = ?`
	endJob = `UPDATE jobs SET taken = TRUE, state = ?, queued = 0, succeeded = ?, failed = ?, cancelled = ?, ended = ?, reason = ?,
		engine = NULL WHERE number = ?`
	putElement = `INSERT INTO elements (job, idx, number, lost, retried, interrupted, memory, not_before, state, code, ended, reason)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job, idx) DO UPDATE SET number = excluded.number, lost = excluded.lost, retried = excluded.retried,
		interrupted = excluded.interrupted, memory = excluded.memory, not_before = excluded.not_before, state = excluded.state, code = excluded.code, ended = excluded.ended, reason = excluded.reason`
	putAttempt = `INSERT INTO attempts (job, idx, number, instance, state, started, ended, code, cost, max_rss, cpu, reason, engine)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job, idx, number) DO UPDATE SET instance = excluded.instance, state = excluded.state, started = excluded.started,
		ended = excluded.ended, code = excluded.code, cost = excluded.cost, max_rss = excluded.max_rss, cpu = excluded.cpu,
		reason = excluded.reason, engine = excluded.engine`
	putInstance = `INSERT INTO instances (id, name, cloud, provider_id, zone, type, market, price, rates, cpu_milli, state, idle_behavior,
		asked, created, ready, idle_since, used, billed, gone, cost, pool, reason, engine)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, cloud = excluded.cloud, provider_id = excluded.provider_id,
		zone = excluded.zone, type = excluded.type, market = excluded.market, price = excluded.price, rates = excluded.rates, cpu_milli = excluded.cpu_milli,
		state = excluded.state, idle_behavior = excluded.idle_behavior, asked = excluded.asked, created = excluded.created,
		ready = excluded.ready, idle_since = excluded.idle_since,
		used = excluded.used, billed = excluded.billed, gone = 0, cost = 0, pool = excluded.pool, reason = excluded.reason, engine = excluded.engine, departed = NULL`
	endInstance = `UPDATE instances SET state = 'gone', gone = ?, billed = ?, cost = ?, reason = ?, engine = NULL, departed = ? WHERE id = ?`
	clearBlocks = `DELETE FROM blocks`
	putBlock    = `INSERT INTO blocks (place, engine) VALUES (?, ?)`
	putSpending = `INSERT INTO spending (scope, engine) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET engine = excluded.engine`
	dropCount   = `DELETE FROM spending WHERE scope = ?`
	putClosing  = `UPDATE fleet SET closing = TRUE`
	dropWish    = `DELETE FROM wishes WHERE id = ?`
	putQueue    = `UPDATE fleet SET paused = ?`
	putPool     = `INSERT INTO pools (name, engine) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET engine = excluded.engine`
	dropPool    = `DELETE FROM pools WHERE name = ?`
	putHook     = `INSERT INTO hooks (key, instance, engine) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING`
	capHooks    = `DELETE FROM hooks WHERE id <= (SELECT max(id) FROM hooks) - ?`
	putStale    = `UPDATE fleet SET unproved = ?, last_job = max(last_job, ?), last_instance = max(last_instance, ?), last_attempt = max(last_attempt, ?)`
	putCurrent  = `UPDATE fleet SET unproved = 'null'`
)

// writeQueries are prepared once.
var writeQueries = []string{
	putJob, endJob, putElement, putAttempt, putInstance, endInstance, clearBlocks, putBlock, putSpending, dropCount, putClosing, putQueue, putPool, dropPool, putHook, capHooks, dropWish, insertJob, insertLabel,
	epochQuery, countChange, putStale, putCurrent, useInput, inputSize, putResults,
}

// Commit records what decisions changed, all of it or nothing. Repeating it changes nothing. It is cheapest with the
// writes of many decisions at once: they share one wait for the disk, and of several writes to one row only the last
// is made.
func (s *Store) Commit(ctx context.Context, writes []engine.Write) error {
	err := s.changeTo(ctx, "writing the records", given(writes), func(tx *sql.Tx) error {
		for _, w := range latest(writes) {
			if err := s.apply(ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.successes.add(succeeded(writes)...)
	}
	return err
}

// given returns the highest numbers that the writes assign.
func given(writes []engine.Write) (m mark) {
	for _, w := range writes {
		if w.Instance != nil {
			m.Instance = max(m.Instance, w.Instance.ID)
		}
	}
	return m
}

// rowKey identifies a row that a write sets.
type rowKey struct {
	kind    byte
	row     int64
	index   int
	attempt int
	scope   string
}

func keyOf(w engine.Write) rowKey {
	switch {
	case w.Job != nil:
		return rowKey{kind: 'j', row: w.Job.Number}
	case w.Ended != nil:
		return rowKey{kind: 'J', row: w.Ended.Number}
	case w.Element != nil:
		return rowKey{kind: 'e', row: w.Element.Job, index: w.Element.Element.Index}
	case w.Attempt != nil:
		id := w.Attempt.Attempt.ID
		return rowKey{kind: 'a', row: id.Job.Number, index: id.Job.Index, attempt: id.Number}
	case w.Instance != nil:
		return rowKey{kind: 'i', row: w.Instance.ID}
	case w.Gone != nil:
		return rowKey{kind: 'I', row: w.Gone.ID}
	case w.Blocks != nil:
		return rowKey{kind: 'b'}
	case w.Spending != nil:
		return rowKey{kind: 's', scope: w.Spending.Scope}
	case w.Closing:
		return rowKey{kind: 'c'}
	case w.Queue != nil:
		return rowKey{kind: 'q'}
	case w.Pool != nil:
		return rowKey{kind: 'P', scope: w.Pool.Name}
	case w.Hook != nil:
		return rowKey{kind: 'h', scope: w.Hook.Key()}
	case w.Stale != nil:
		return rowKey{kind: 'd'}
	case w.Current:
		return rowKey{kind: 'p'}
	}
	return rowKey{kind: 'w', row: w.Reply.Wish}
}

// latest drops writes that a later write to the same row replaces. References between rows are checked at the end of
// the transaction, so a row may come after those that refer to it.
func latest(writes []engine.Write) []engine.Write {
	seen := make(map[rowKey]struct{}, len(writes))
	last := make([]engine.Write, 0, len(writes))
	for _, w := range slices.Backward(writes) {
		key := keyOf(w)
		if _, later := seen[key]; !later {
			seen[key] = struct{}{}
			last = append(last, w)
		}
	}
	slices.Reverse(last)
	return last
}

func (s *Store) apply(ctx context.Context, tx *sql.Tx, w engine.Write) error {
	switch {
	case w.Job != nil:
		return s.putJob(ctx, tx, *w.Job)
	case w.Ended != nil:
		return s.endJob(ctx, tx, *w.Ended)
	case w.Element != nil:
		return s.putElement(ctx, tx, *w.Element)
	case w.Attempt != nil:
		return s.putAttempt(ctx, tx, *w.Attempt)
	case w.Instance != nil:
		return s.putInstance(ctx, tx, *w.Instance)
	case w.Gone != nil:
		return s.endInstance(ctx, tx, *w.Gone)
	case w.Blocks != nil:
		return s.putBlocks(ctx, tx, *w.Blocks)
	case w.Spending != nil:
		return s.putSpending(ctx, tx, *w.Spending)
	case w.Closing:
		return s.run(ctx, tx, putClosing)
	case w.Queue != nil:
		return s.run(ctx, tx, putQueue, asJSON{w.Queue.Paused})
	case w.Pool != nil:
		return s.putPool(ctx, tx, *w.Pool)
	case w.Hook != nil:
		return s.putHook(ctx, tx, *w.Hook)
	case w.Stale != nil:
		return s.putStale(ctx, tx, *w.Stale)
	case w.Current:
		return s.run(ctx, tx, putCurrent)
	}
	return s.run(ctx, tx, dropWish, w.Reply.Wish)
}

// run runs a prepared query.
func (s *Store) run(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.StmtContext(ctx, s.prepared[query]).ExecContext(ctx, args...)
	return err
}

// runOn runs a prepared query that must find its row.
func (s *Store) runOn(ctx context.Context, tx *sql.Tx, row string, query string, args ...any) error {
	result, err := tx.StmtContext(ctx, s.prepared[query]).ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("%s is not in the records", row)
}

func (s *Store) putJob(ctx context.Context, tx *sql.Tx, j engine.Job) error {
	j.Tried = nil
	var why drover.Reason
	if v := j.WhyCancelled(); v != nil {
		why = v.Reason()
	}
	return s.runOn(ctx, tx, fmt.Sprint("job ", j.Number), putJob,
		j.Priority, stateOf(j), j.Queued.Count(), j.Succeeded, j.Failed, j.Cancelled, asJSON{why}, asJSON{j}, j.Number)
}

// stateOf returns the state of a whole job that is not final.
func stateOf(j engine.Job) drover.JobState {
	if j.Queued.Count()+j.Succeeded+j.Failed+j.Cancelled < j.Array.Size() {
		return drover.JobRunning
	}
	return drover.JobQueued
}

func (s *Store) endJob(ctx context.Context, tx *sql.Tx, end engine.JobEnd) error {
	return s.runOn(ctx, tx, fmt.Sprint("job ", end.Number), endJob,
		end.State, end.Succeeded, end.Failed, end.Cancelled, end.At, asJSON{end.Reason}, end.Number)
}

func (s *Store) putElement(ctx context.Context, tx *sql.Tx, row engine.ElementRow) error {
	e := row.Element
	return s.run(ctx, tx, putElement,
		row.Job, e.Index, e.Number, e.Lost, e.Retried, e.Interrupted, e.Memory, e.Until, row.State, row.Code, row.Ended, asJSON{row.Reason})
}

func (s *Store) putAttempt(ctx context.Context, tx *sql.Tx, row engine.AttemptRow) error {
	a := row.Attempt
	a.Effect, a.Fails, a.Unkept, a.Missed, a.Retry = 0, 0, engine.Verdict{}, 0, 0 // observed
	var exit drover.Exit
	var code *int
	if a.Exit != nil {
		exit, code = *a.Exit, &a.Exit.Code
	}
	return s.run(ctx, tx, putAttempt, a.ID.Job.Number, a.ID.Job.Index, a.ID.Number, a.Instance, a.State, a.Started, a.Ended,
		code, row.Cost, exit.MaxRSS, int64(exit.CPU), asJSON{row.Reason}, asJSONIf(a.State.Live(), a))
}

func (s *Store) putInstance(ctx context.Context, tx *sql.Tx, in engine.Instance) error {
	in = in.Durable()
	var why drover.Reason
	if in.Reason != nil {
		why = in.Reason.Reason()
	}
	return s.run(ctx, tx, putInstance, in.ID, in.Name, in.Cloud, in.ProviderID, in.Zone, in.Type.Name, in.Market, in.Price, asJSON{in.Rates},
		in.Resources.CPU, in.State, in.Idle, in.Asked, in.Created, in.Ready, in.IdleSince, in.Used, in.Ended, in.Pool, asJSON{why}, asJSON{in})
}

func (s *Store) endInstance(ctx context.Context, tx *sql.Tx, end engine.InstanceEnd) error {
	return s.runOn(ctx, tx, fmt.Sprint("instance ", end.ID), endInstance, end.At, end.At, end.Cost, asJSON{end.Reason}, asJSONIf(end.Departed != nil, end.Departed), end.ID)
}

func (s *Store) putBlocks(ctx context.Context, tx *sql.Tx, blocks []engine.Block) error {
	if err := s.run(ctx, tx, clearBlocks); err != nil {
		return err
	}
	for place, b := range blocks {
		if err := s.run(ctx, tx, putBlock, place, asJSON{b}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putSpending(ctx context.Context, tx *sql.Tx, spent engine.Spending) error {
	if spent.Dropped {
		return s.run(ctx, tx, dropCount, spent.Scope)
	}
	return s.run(ctx, tx, putSpending, spent.Scope, asJSON{spent})
}

func (s *Store) putPool(ctx context.Context, tx *sql.Tx, p engine.PoolRow) error {
	if p.Gone {
		return s.run(ctx, tx, dropPool, p.Name)
	}
	return s.run(ctx, tx, putPool, p.Name, asJSON{p})
}

func (s *Store) putStale(ctx context.Context, tx *sql.Tx, d engine.Staleness) error {
	return s.run(ctx, tx, putStale, asJSON{d.Reason}, d.LastJob, d.LastInstance, d.LastAttempt)
}
