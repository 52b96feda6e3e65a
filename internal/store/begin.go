package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/forecast"
)

// Begin raises the epoch and returns the durable part of the engine's state. Observations come back zero: they are made
// again. It does not include submitted jobs that the engine never took, see Pending. A store of another fleet is
// refused.
//
// If the note beside the records shows that they may be an older copy, they are unproved until a Commit marks them as
// proved, and numbers that may have been used since are not used again. The state then includes the attempts that have
// succeeded since, as far as they are in the log beside the records.
//
// From then on, changes through another Store that called Begin earlier are refused with KindConflict.
func (s *Store) Begin(ctx context.Context, fleet string) (engine.State, error) {
	var state engine.State
	var now mark
	err := s.transact(ctx, "beginning fleet "+fleet, func(tx *sql.Tx) (err error) {
		fresh := false
		if state, fresh, err = begin(ctx, tx, fleet); err != nil {
			return err
		}
		if now, err = s.verify(ctx, tx, fresh); err != nil {
			return err
		}
		if err := s.setAside(ctx, tx); err != nil {
			return err
		}
		if err := load(ctx, tx, &state); err != nil || state.StaleRecords == nil {
			return err
		}
		state.Successes, err = s.recall(ctx, tx, state.Nonce)
		return err
	})
	if err != nil {
		return state, err
	}
	s.epoch.Store(state.Epoch)
	now.Instance = state.LastInstance
	if err := s.successes.begin(state.Nonce); err != nil {
		return state, err
	}
	return state, s.proof.begin(now)
}

// verify compares the records with the note beside them, and marks them as unproved if they lag behind it, unless no
// controller ever began with them. It returns how far they have come.
func (s *Store) verify(ctx context.Context, tx *sql.Tx, fresh bool) (m mark, err error) {
	if m, err = readMark(ctx, tx); err != nil {
		return m, err
	}
	noted, why, err := s.proof.against(m)
	if err != nil {
		return m, err
	}
	if why != nil && !fresh {
		beyond := func(own, noted int64) int64 { return max(own, noted) + engine.Leap }
		err := s.putStale(ctx, tx, engine.Staleness{
			Reason: *why, LastJob: beyond(m.Job, noted.Job), LastInstance: beyond(m.Instance, noted.Instance), LastAttempt: int(beyond(m.Attempt, noted.Attempt)),
		})
		if err != nil {
			return m, err
		}
	}
	err = tx.StmtContext(ctx, s.prepared[countChange]).QueryRowContext(ctx).Scan(&m.Changes, &m.Job, &m.Attempt)
	return m, err
}

// begin also reports whether no controller has begun with these records before.
func begin(ctx context.Context, tx *sql.Tx, fleet string) (st engine.State, fresh bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT version, name, nonce, epoch, closing FROM fleet`).
		Scan(&st.Version, &st.Fleet, &st.Nonce, &st.Epoch, &st.Closing)
	switch {
	case err != nil:
		return st, false, err
	case st.Fleet == "":
		fresh = true
		st.Fleet, st.Nonce, st.Version = fleet, newNonce(), engine.StateVersion
	case st.Fleet != fleet:
		return st, false, drover.Errorf(drover.KindConflict, "the state belongs to fleet %q, not to %q", st.Fleet, fleet).
			WithHint("write fleet: %s, or give this fleet a state of its own", st.Fleet)
	}
	// Epochs are the time in milliseconds, and a controller takes longer than one to start: so this epoch is beyond every
	// one that lost records of the fleet can have reached. Instances refuse controllers of an earlier one.
	st.Epoch = max(st.Epoch+1, time.Now().UnixMilli())
	err = execute(ctx, tx, `UPDATE fleet SET version = ?, name = ?, nonce = ?, epoch = ?`, st.Version, st.Fleet, st.Nonce, st.Epoch)
	return st, fresh, err
}

// newNonce makes five characters that are valid in instance names of every cloud.
func newNonce() string { return strings.ToLower(rand.Text()[:5]) }

// lastTaken reads how far the engine has come in taking jobs, which it does in order: new jobs, and those put back in
// the queue.
const lastTaken = `SELECT
	coalesce((SELECT max(number) FROM jobs WHERE taken OR again > 0), 0),
	coalesce((SELECT min(again) - 1 FROM jobs WHERE NOT taken AND again > 0), last_again) FROM fleet`

func load(ctx context.Context, tx *sql.Tx, st *engine.State) error {
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(id), 0), coalesce(sum(cost), 0) FROM instances`).
		Scan(&st.LastInstance, &st.Spent)
	if err != nil {
		return err
	}
	err = tx.QueryRowContext(ctx, `SELECT max(last_instance, ?), last_attempt, unproved, paused FROM fleet`, st.LastInstance).
		Scan(&st.LastInstance, &st.LastAttempt, into(&st.StaleRecords), into(&st.Paused))
	if err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, lastTaken).Scan(&st.LastJob, &st.LastAgain); err != nil {
		return fmt.Errorf("reading the last job: %w", err)
	}
	if st.Jobs, err = jobsInEngine(ctx, tx); err != nil {
		return fmt.Errorf("reading the jobs: %w", err)
	}
	err = cmp.Or(
		loadAll(ctx, tx, "the attempts", &st.Attempts, `SELECT engine FROM attempts WHERE engine IS NOT NULL ORDER BY job, idx, number`),
		loadAll(ctx, tx, "the instances", &st.Instances, `SELECT engine FROM instances WHERE engine IS NOT NULL ORDER BY id`),
		// Only the newest: except in the largest fleets, fewer instances go within an hour.
		loadAll(ctx, tx, "the instances that are gone", &st.Departed,
			`SELECT departed FROM (SELECT * FROM instances WHERE gone > 0 AND departed IS NOT NULL ORDER BY gone DESC LIMIT 10000) ORDER BY departed ->> '$.at', id`),
		loadAll(ctx, tx, "the blocks", &st.Blocks, `SELECT engine FROM blocks ORDER BY place`),
		loadAll(ctx, tx, "past spending", &st.Spending, `SELECT engine FROM spending ORDER BY scope`),
		loadAll(ctx, tx, "the pools", &st.Pools, `SELECT engine FROM pools ORDER BY name`),
	)
	if err != nil {
		return err
	}
	if st.Stats.Boots, err = boots(ctx, tx); err != nil {
		return fmt.Errorf("reading boot times: %w", err)
	}
	if st.Stats.Runs, err = runs(ctx, tx); err != nil {
		return fmt.Errorf("reading run times: %w", err)
	}
	return nil
}

// loadAll reads a column of JSON documents into a list.
func loadAll[T any](ctx context.Context, tx *sql.Tx, what string, list *[]T, query string) (err error) {
	if *list, err = collect(ctx, tx, readDocument[T], query); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}

// boots returns how long recent instances took to boot, by type, without adopted ones, which may have booted long
// before.
func boots(ctx context.Context, tx *sql.Tx) (seen []forecast.Stat, err error) {
	return seen, each(ctx, tx, func(row scanner) error {
		var cloud, instanceType string
		var created, ready drover.Time
		err := row.Scan(&cloud, &instanceType, &created, &ready)
		seen = forecast.See(seen, forecast.BootKey(cloud, instanceType), ready.Sub(created), ready)
		return err
	}, `SELECT cloud, type, created, ready FROM (SELECT * FROM instances ORDER BY id DESC LIMIT 1000)
		WHERE asked < created AND created < ready ORDER BY ready`)
}

// runs returns how long jobs ran that recently ended by themselves.
func runs(ctx context.Context, tx *sql.Tx) (seen []forecast.RunStat, err error) {
	return seen, each(ctx, tx, func(row scanner) error {
		var j forecast.Job
		var started, ended drover.Time
		err := row.Scan(&j.User, &j.Name, &j.Expected, &j.Since, &started, &ended)
		seen = forecast.SeeRun(seen, j, ended.Sub(started), ended)
		return err
	}, `SELECT user_name, name, coalesce(spec ->> '$.expected', 0), jobs.submitted, a.started, a.ended
		FROM (SELECT * FROM attempts WHERE ended > 0 ORDER BY job DESC, idx DESC, number DESC LIMIT 1000) AS a JOIN jobs ON jobs.number = a.job
		WHERE a.state = 'succeeded' OR a.reason ->> '$.code' = 'exit' ORDER BY a.ended, a.job, a.idx`)
}

// readDocument reads a row of one JSON column.
func readDocument[T any](row scanner) (v T, err error) {
	return v, row.Scan(into(&v))
}

// jobsInEngine reads jobs and their elements, which have rows of their own so that writing a job stays cheap.
func jobsInEngine(ctx context.Context, tx *sql.Tx) ([]engine.Job, error) {
	jobs, err := collect(ctx, tx, readDocument[engine.Job], `SELECT engine FROM jobs WHERE taken AND engine IS NOT NULL ORDER BY number`)
	if err != nil {
		return nil, err
	}
	place := make(map[int64]int, len(jobs))
	for i, j := range jobs {
		place[j.Number] = i
	}
	return jobs, each(ctx, tx, func(row scanner) error {
		var number int64
		var e engine.Element
		if err := row.Scan(&number, &e.Index, &e.Number, &e.Lost, &e.Retried, &e.Interrupted, &e.Memory, &e.Until); err != nil {
			return err
		}
		if i, in := place[number]; in {
			jobs[i].Tried = append(jobs[i].Tried, e)
		}
		return nil
	}, `SELECT e.job, e.idx, e.number, e.lost, e.retried, e.interrupted, e.memory, e.not_before FROM jobs j JOIN elements e ON e.job = j.number
		WHERE j.engine IS NOT NULL AND e.state IN ('queued', 'running') ORDER BY e.job, e.idx`)
}
