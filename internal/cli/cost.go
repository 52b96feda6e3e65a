package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/human"
)

// costFlags are the flags of `drover cost`.
type costFlags struct {
	by    string
	since string
	until string
	limit int
}

func (a *app) costCommand() *cobra.Command {
	var f costFlags
	cmd := named(&cobra.Command{
		Use:   "cost",
		Short: "Show costs by job, label, user, pool, cloud or type",
		Long: `Show what the fleet has cost, most expensive first.

    JOBS   vCPUs that jobs used
    BOOT   instances that were not ready yet
    IDLE   unused vCPUs
    WASTE  lost or interrupted attempts, and instances that neither ran a job nor served a pool

The line named - shows costs that belong to no job, label or user.

--since and --until take a time (2026-11-22T08:00:00Z), a date (2026-11-22, UTC), or how long ago
(36h, 7d).`,
		Example: "  drover cost\n  drover cost --by user --since 2026-11-01\n  drover cost --by label:project --since 7d -o json",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			costs, err := svc.Costs(ctx, filter)
			if err != nil {
				return err
			}
			return a.showCosts(costs)
		}),
	})
	flags := cmd.Flags()
	flags.StringVar(&f.by, "by", string(drover.CostByJob), "the `key` to group costs by: job, label, label:NAME, user, pool, cloud or type")
	flags.StringVar(&f.since, "since", "", "count costs from this `time`; default: the beginning")
	flags.StringVar(&f.until, "until", "", "count costs until this `time`; default: now")
	flags.IntVar(&f.limit, "limit", 0, "show only the `N` highest costs; default and maximum: 1000")
	complete(cmd, "by", completeWords(drover.CostsBy()...))
	return cmd
}

func (f costFlags) filter(now time.Time) (filter drover.CostFilter, err error) {
	filter = drover.CostFilter{By: drover.CostBy(f.by), Limit: f.limit}
	switch {
	case !filter.By.Known():
		return filter, drover.Errorf(drover.KindInvalid, "--by %s is not valid", f.by).WithHint("use job, label, label:NAME, user, pool, cloud or type")
	case f.limit < 0:
		return filter, drover.Errorf(drover.KindInvalid, "--limit is %d, but must not be negative", f.limit)
	}
	if filter.Since, err = timeFlag("since", f.since, now); err == nil {
		filter.Until, err = timeFlag("until", f.until, now)
	}
	if err == nil && filter.Until != 0 && filter.Until <= filter.Since {
		return filter, drover.Errorf(drover.KindInvalid, "--until is not after --since")
	}
	return filter, err
}

// timeFlag parses a time, a date, or a duration before now; 0 if the text is empty.
func timeFlag(flag, text string, now time.Time) (drover.Time, error) {
	if text == "" {
		return 0, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Unix() >= 0 && t.Before(now.AddDate(100, 0, 0)) {
			return drover.TimeOf(t), nil
		}
	}
	ago, err := config.ParseDuration(text)
	if err != nil || ago < 0 || now.Add(-ago).Unix() < 0 || now.Add(-ago).After(now) {
		return 0, drover.Errorf(drover.KindInvalid, "--%s %s is neither a time nor a duration", flag, text).
			WithHint("write a time such as 2026-11-22T08:00:00Z, a date, or how long ago, such as 36h or 7d")
	}
	return drover.TimeOf(now.Add(-ago)), nil
}

// showCosts prints costs. For programs it prints one object.
func (a *app) showCosts(costs drover.Costs) error {
	if a.forPrograms() {
		return a.print(costs)
	}
	lines := costs.Lines
	if costs.Others != nil && a.output != outputName {
		others := *costs.Others
		others.Key = "others"
		lines = append(lines, others)
	}
	if a.output != outputName && len(lines) > 1 {
		total := costs.Total
		total.Key = "total"
		lines = append(lines, total)
	}
	return printList(a, costListing(costs.By), each(lines))
}

func costListing(by drover.CostBy) listing[drover.CostLine] {
	money := func(title string, of func(drover.CostLine) float64) column[drover.CostLine] {
		return column[drover.CostLine]{title: title, text: func(l drover.CostLine) string { return human.Dollars(of(l)) }, right: true}
	}
	key := func(l drover.CostLine) string { return cmp.Or(l.Key, "-") }
	title, _, _ := strings.Cut(string(by), ":")
	l := listing[drover.CostLine]{
		name:    key,
		none:    "there are no costs",
		columns: []column[drover.CostLine]{{title: strings.ToUpper(title), text: key}},
	}
	if by == drover.CostByJob {
		l.columns = append(l.columns, column[drover.CostLine]{title: "NAME", text: func(l drover.CostLine) string { return l.Name }})
	}
	l.columns = append(l.columns,
		money("JOBS", func(l drover.CostLine) float64 { return l.Jobs }),
		money("BOOT", func(l drover.CostLine) float64 { return l.Boot }),
		money("IDLE", func(l drover.CostLine) float64 { return l.Idle }),
		money("WASTE", func(l drover.CostLine) float64 { return l.Waste }),
		money("TOTAL", func(l drover.CostLine) float64 { return l.Cost }))
	return l
}
