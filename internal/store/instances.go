package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"drover"
)

// Instances lists instances by id, each with its current jobs. To read on after Limit of them, set After to the last
// one's id. A negative Limit lists all. The cost of an instance that is not gone counts up to now.
func (s *Store) Instances(ctx context.Context, now drover.Time, f drover.InstanceFilter) (list []drover.Instance, err error) {
	if f.Limit == 0 || f.Limit > drover.MaxPage {
		f.Limit = drover.MaxPage
	}
	c := chooseInstances(f)
	err = s.look(ctx, "listing instances", func(tx *sql.Tx) error {
		order := ` ORDER BY id LIMIT ?`
		if f.Newest {
			order = ` ORDER BY id DESC LIMIT ?`
		}
		if list, err = readInstances(ctx, tx, now, c.query(selectInstances)+order, append(c.args, f.Limit)...); err != nil {
			return err
		}
		return addHistory(ctx, tx, f, list)
	})
	return list, err
}

// addHistory adds each instance's last attempts, as many as the filter wants.
func addHistory(ctx context.Context, tx *sql.Tx, f drover.InstanceFilter, list []drover.Instance) (err error) {
	if f.Attempts <= 0 {
		return nil
	}
	for i := range list {
		list[i].Attempts, err = collect(ctx, tx, func(row scanner) (a drover.InstanceAttempt, err error) {
			var started, ended drover.Time
			err = row.Scan(&a.Job.Number, &a.Job.Index, &a.Number, &a.State, &started, &ended)
			a.Started, a.Ended = started.Std(), standard(ended)
			return a, err
		}, `SELECT job, idx, number, state, started, ended FROM attempts WHERE instance = ? ORDER BY started DESC LIMIT ?`,
			list[i].ID, min(f.Attempts, drover.MaxAttempts))
		if err != nil {
			return err
		}
	}
	return nil
}

func chooseInstances(f drover.InstanceFilter) (c conditions) {
	c.addIf(!f.Newest, `id > ?`, f.After)
	c.addIf(f.Newest && f.After != 0, `id < ?`, f.After)
	c.addIf(f.Since != 0, `(engine IS NOT NULL OR gone >= ?)`, f.Since)
	c.addIf(!f.Gone && f.Since == 0 && !slices.Contains(f.States, drover.InstanceGone), `engine IS NOT NULL`)
	c.addIf(f.Cloud != "", `cloud = ?`, f.Cloud)
	c.addIf(len(f.States) > 0, `state IN (SELECT value FROM json_each(?))`, asJSON{f.States})
	return c
}

// Instance returns the instance with this id, name, or cloud's id, even if it is gone. If several had the name, that is
// the live one, or else the last.
func (s *Store) Instance(ctx context.Context, now drover.Time, name string) (in drover.Instance, err error) {
	err = s.look(ctx, "reading instance "+name, func(tx *sql.Tx) (err error) {
		var found []drover.Instance
		if id, invalid := strconv.ParseInt(name, 10, 64); invalid == nil {
			found, err = readInstances(ctx, tx, now, selectInstances+` WHERE id = ?`, id)
		}
		if err == nil && len(found) == 0 && name != "" {
			found, err = readInstances(ctx, tx, now, selectInstances+` WHERE name = ? OR provider_id = ?
				ORDER BY name <> ?, engine IS NULL, id DESC LIMIT 1`, name, name, name)
		}
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return drover.Errorf(drover.KindNotFound, "there is no instance %.100q", name).WithHint("drover instances lists all instances")
		}
		in = found[0]
		return tx.QueryRowContext(ctx, `SELECT runner_log FROM instances WHERE id = ?`, in.ID).Scan(into(&in.RunnerLog))
	})
	return in, err
}

// KeepRunnerLogs stores the last lines of runners' logs, by instance.
func (s *Store) KeepRunnerLogs(ctx context.Context, logs map[int64][]string) error {
	return s.change(ctx, "storing the last lines of runners' logs", func(tx *sql.Tx) error {
		for id, lines := range logs {
			if err := execute(ctx, tx, `UPDATE instances SET runner_log = ? WHERE id = ?`, asJSON{lines}, id); err != nil {
				return err
			}
		}
		return nil
	})
}

const selectInstances = `SELECT id, name, cloud, provider_id, zone, type, market, state, idle_behavior, price, rates, cost, created, ready, idle_since,
	billed, gone, reason, coalesce(engine ->> '$.user', ''), pool FROM instances`

func readInstances(ctx context.Context, tx *sql.Tx, now drover.Time, query string, args ...any) ([]drover.Instance, error) {
	list, err := collect(ctx, tx, func(row scanner) (drover.Instance, error) { return readInstance(row, now) }, query, args...)
	if err != nil {
		return nil, err
	}
	return list, addJobs(ctx, tx, list)
}

func readInstance(row scanner, now drover.Time) (in drover.Instance, err error) {
	var tariff drover.Tariff
	var cost drover.Money
	var created, ready, idle, billed, gone drover.Time
	var reason drover.Reason
	err = row.Scan(&in.ID, &in.Name, &in.Cloud, &in.ProviderID, &in.Zone, &in.Type, &in.Market, &in.State, &in.Idle, &tariff.Price, into(&tariff.Rates),
		&cost, &created, &ready, &idle, &billed, &gone, into(&reason), &in.User, &in.Pool)
	if gone == 0 && created != 0 {
		cost = tariff.Cost(created, created, cmp.Or(billed, now))
	}
	in.Price, in.Cost, in.Reason, in.Jobs = tariff.Price.USD(), cost.USD(), reasonOf(reason), []drover.JobID{}
	in.Created, in.Ready, in.IdleSince, in.Gone = standard(created), standard(ready), standard(idle), standard(gone)
	return in, err
}

// addJobs adds the jobs of live attempts to their instances.
func addJobs(ctx context.Context, tx *sql.Tx, list []drover.Instance) error {
	if len(list) == 0 {
		return nil
	}
	at := make(map[int64]int, len(list))
	for i, in := range list {
		at[in.ID] = i
	}
	first, last := list[0].ID, list[len(list)-1].ID
	return each(ctx, tx, func(row scanner) error {
		var id int64
		var job drover.JobID
		err := row.Scan(&id, &job.Number, &job.Index)
		if i, listed := at[id]; listed {
			list[i].Jobs = append(list[i].Jobs, job)
		}
		return err
	}, `SELECT instance, job, idx FROM attempts WHERE engine IS NOT NULL AND instance BETWEEN ? AND ? ORDER BY job, idx`,
		min(first, last), max(first, last))
}
