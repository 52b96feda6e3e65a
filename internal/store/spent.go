package store

import (
	"context"
	"database/sql"
	"strings"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
)

// Spent returns what each budget has spent in the current hour, day and month on finished work: its initial value.
func (s *Store) Spent(ctx context.Context, now drover.Time, budgets []engine.Budget) (spent []engine.Spending, err error) {
	if len(budgets) == 0 {
		return nil, nil
	}
	for _, b := range budgets {
		spent = append(spent, engine.NewSpending(b, now))
	}
	err = s.look(ctx, "adding up past spending", func(tx *sql.Tx) error {
		since := spent[0].Since()
		bills := map[int64]billing.Bill{}
		err := eachBill(ctx, tx, now, since, func(in rented) {
			bills[in.id] = in.bill
			for i, b := range budgets {
				if in.gone && b.User == "" && b.Label == "" {
					spent[i].Add(in.bill.Cost)
				}
			}
		})
		if err != nil {
			return err
		}
		return eachFinal(ctx, tx, since, func(f finalAttempt) {
			bill, there := bills[f.instance]
			for i, b := range budgets {
				if there && (b.User != "" && b.User == f.user || b.Label != "" && f.bears(b.Label)) {
					spent[i].Add(func(from, to drover.Time) drover.Money { return bill.Share(f.use, from, to) })
				}
			}
		})
	})
	return spent, err
}

// finalAttempt is an attempt that is over, and its job's user.
type finalAttempt struct {
	instance int64
	use      billing.Use
	user     string
	labels   map[string]string
}

// bears reports whether the job has a label, NAME=VALUE.
func (f finalAttempt) bears(label string) bool {
	name, value, _ := strings.Cut(label, "=")
	has, ok := f.labels[name]
	return ok && has == value
}

func eachFinal(ctx context.Context, tx *sql.Tx, since drover.Time, do func(finalAttempt)) error {
	return each(ctx, tx, func(row scanner) error {
		var f finalAttempt
		err := row.Scan(&f.instance, &f.use.Started, &f.use.Ended, &f.use.CPU, &f.user, into(&f.labels))
		if err == nil {
			do(f)
		}
		return err
	}, `SELECT a.instance, a.started, a.ended, j.cpu_milli, j.user_name, coalesce(json_extract(j.spec, '$.labels'), '{}')
		FROM attempts a JOIN jobs j ON j.number = a.job WHERE a.ended > 0 AND a.ended > ? AND a.engine IS NULL`, since)
}
