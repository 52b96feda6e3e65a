package store

import (
	"context"
	"database/sql"
	"slices"

	"drover"
	"drover/internal/engine"
)

// Instances lists the instances that are not gone, or with withGone all there ever were, by id, each with the jobs that it has now.
// The cost of one that is not gone is its cost up to now.
func (s *Store) Instances(ctx context.Context, now drover.Time, withGone bool) (list []drover.Instance, err error) {
	err = s.look(ctx, "listing instances", func(tx *sql.Tx) error {
		list, err = collect(ctx, tx, func(row scanner) (drover.Instance, error) { return readInstance(row, now) },
			`SELECT id, name, cloud, provider_id, zone, type, market, state, idle_behavior, price, cost, created, ready, idle_since,
			gone, reason FROM instances WHERE ? OR engine IS NOT NULL ORDER BY id`, withGone)
		if err != nil {
			return err
		}
		return addJobs(ctx, tx, list)
	})
	return list, err
}

func readInstance(row scanner, now drover.Time) (in drover.Instance, err error) {
	var price, cost drover.Money
	var created, ready, idle, gone drover.Time
	var reason drover.Reason
	err = row.Scan(&in.ID, &in.Name, &in.Cloud, &in.ProviderID, &in.Zone, &in.Type, &in.Market, &in.State, &in.Idle, &price, &cost,
		&created, &ready, &idle, &gone, into(&reason))
	if gone == 0 && created != 0 {
		cost = price.For(now.Sub(created))
	}
	in.Price, in.Cost, in.Reason, in.Jobs = price.USD(), cost.USD(), reasonOf(reason), []drover.JobID{}
	in.Created, in.Ready, in.IdleSince, in.Gone = standard(created), standard(ready), standard(idle), standard(gone)
	return in, err
}

// addJobs gives instances, sorted by id, the jobs that live attempts have on them.
func addJobs(ctx context.Context, tx *sql.Tx, list []drover.Instance) error {
	return each(ctx, tx, func(row scanner) error {
		var id int64
		var job drover.JobID
		err := row.Scan(&id, &job.Number, &job.Index)
		at, found := slices.BinarySearchFunc(list, id, func(in drover.Instance, id int64) int { return int(in.ID - id) })
		if found {
			list[at].Jobs = append(list[at].Jobs, job)
		}
		return err
	}, `SELECT instance, job, idx FROM attempts WHERE engine IS NOT NULL ORDER BY job, idx`)
}

// Blocks are the offerings that are left alone, in the engine's order, those whose time is over included until the engine drops them.
func (s *Store) Blocks(ctx context.Context) (list []engine.Block, err error) {
	err = s.look(ctx, "listing blocks", func(tx *sql.Tx) error {
		list, err = blocks(ctx, tx)
		return err
	})
	return list, err
}
