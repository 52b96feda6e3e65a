package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"drover"
)

const countsQuery = `SELECT queued, running, succeeded, failed, cancelled FROM counts WHERE id = 1`

// Counts returns the number of jobs in each state, counting array elements. Its work does not grow with the number of
// jobs.
func (s *Store) Counts(ctx context.Context) (map[drover.JobState]int, error) {
	var queued, running, succeeded, failed, cancelled int
	err := s.read.QueryRowContext(ctx, countsQuery).Scan(&queued, &running, &succeeded, &failed, &cancelled)
	if err != nil {
		return nil, s.doing(ctx, "counting jobs", err)
	}
	return map[drover.JobState]int{
		drover.JobQueued: queued, drover.JobRunning: running, drover.JobSucceeded: succeeded, drover.JobFailed: failed,
		drover.JobCancelled: cancelled,
	}, nil
}

// Summary returns what the fleet has done and cost so far.
func (s *Store) Summary(ctx context.Context, now drover.Time) (sum drover.Summary, err error) {
	err = s.look(ctx, "summing up", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(last_index - first_index + 1), 0), coalesce(sum(succeeded), 0),
			coalesce(sum(failed), 0), coalesce(sum(cancelled), 0) FROM jobs`).
			Scan(&sum.Jobs, &sum.Succeeded, &sum.Failed, &sum.Cancelled)
		if err != nil {
			return err
		}
		if err := addAttempts(ctx, tx, &sum, now); err != nil {
			return err
		}
		if sum.Warnings, err = warnings(ctx, tx); err != nil {
			return err
		}
		return addRent(ctx, tx, &sum, now)
	})
	return sum, err
}

// addAttempts sums up attempts. Unfinished ones have no cost in their rows yet.
func addAttempts(ctx context.Context, tx *sql.Tx, sum *drover.Summary, now drover.Time) error {
	var cpu float64
	err := tx.QueryRowContext(ctx, `SELECT count(*), total(cpu), coalesce(sum(cost), 0) FROM attempts`).
		Scan(&sum.Attempts, &cpu, &sum.JobCost)
	if err != nil {
		return err
	}
	sum.CPUSeconds = cpu / float64(time.Second)
	return eachLive(ctx, tx, func(_ int64, s share) { sum.JobCost += s.cost(now) })
}

// addRent sums up the instances whose bill began.
func addRent(ctx context.Context, tx *sql.Tx, sum *drover.Summary, now drover.Time) error {
	return each(ctx, tx, func(row scanner) error {
		var created, billed, gone drover.Time
		var tariff drover.Tariff
		var cost drover.Money
		if err := row.Scan(&created, &billed, &gone, &tariff.Price, into(&tariff.Rates), &cost); err != nil {
			return err
		}
		end := cmp.Or(billed, now)
		if gone == 0 {
			cost = tariff.Cost(created, created, end)
		}
		sum.Instances++
		sum.InstanceSeconds += max(end.Sub(created), 0).Seconds()
		sum.Cost += cost
		return nil
	}, `SELECT created, billed, gone, price, rates, cost FROM instances WHERE created <> 0`)
}
