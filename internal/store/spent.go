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
		return each(ctx, tx, func(row scanner) error {
			var instance int64
			use := billing.Use{Settled: true}
			var user string
			var labels map[string]string
			if err := row.Scan(&instance, &use.Started, &use.Ended, &use.Cost, &use.CPU, &user, into(&labels)); err != nil {
				return err
			}
			bill, there := bills[instance]
			for i, b := range budgets {
				if there && (b.User != "" && b.User == user || b.Label != "" && bears(labels, b.Label)) {
					spent[i].Add(func(from, to drover.Time) drover.Money { return bill.Share(use, from, to) })
				}
			}
			return nil
		}, `SELECT a.instance, a.started, a.ended, a.cost, j.cpu_milli, j.user_name, coalesce(json_extract(j.spec, '$.labels'), '{}')
			FROM attempts a JOIN jobs j ON j.number = a.job WHERE a.ended > 0 AND a.ended > ? AND a.engine IS NULL`, since)
	})
	return spent, err
}

// bears reports whether labels include one that is written NAME=VALUE.
func bears(labels map[string]string, label string) bool {
	name, value, _ := strings.Cut(label, "=")
	has, ok := labels[name]
	return ok && has == value
}
