package httpapi

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"drover"
)

type costsInput struct {
	By    string `query:"by" maxLength:"100" doc:"the key to group costs by: job, label, label:NAME, user, pool, cloud or type; default: job"`
	Since string `query:"since" doc:"only costs from this time on, for example 2026-11-22T08:00:00Z; default: the fleet's beginning"`
	Until string `query:"until" doc:"only costs until this time; default and latest: now"`
	Limit int    `query:"limit" minimum:"0" doc:"at most this many lines; default and maximum: 1000"`
	Step  int    `query:"step" minimum:"0" maximum:"31622400" doc:"also list costs over time, in steps of this many seconds, at most 500 steps"`
}

func (h *Handler) costs(ctx context.Context, in *costsInput) (*output[drover.Costs], error) {
	f := drover.CostFilter{By: cmp.Or(drover.CostBy(in.By), drover.CostByJob), Limit: in.Limit, Step: time.Duration(in.Step) * time.Second}
	if who := drover.IdentityOf(ctx); strings.HasPrefix(string(f.By), string(drover.CostByLabel)) && !h.readsAll(who) {
		return nil, needs(drover.RoleOperate, who) // labels are private to their users
	}
	err := parsed(in.Since, &f.Since, parseTime)
	if err == nil {
		err = parsed(in.Until, &f.Until, parseTime)
	}
	if err != nil {
		return nil, err
	}
	return asOutput(h.cfg.Service.Costs(ctx, f))
}

// Times before 1970 are not valid, and those far ahead do not fit a drover.Time.
const lastYear = 2200

func parseTime(text string) (drover.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Unix() < 0 || t.Year() > lastYear {
		return 0, drover.Errorf(drover.KindInvalid, "%.80q is not a time", text).WithHint("write it as 2026-11-22T08:00:00Z")
	}
	return drover.TimeOf(t), nil
}

func costQuery(f drover.CostFilter) url.Values {
	q := url.Values{}
	put(q, "by", string(f.By))
	put(q, "since", f.Since)
	put(q, "until", f.Until)
	put(q, "limit", f.Limit)
	put(q, "step", int64(f.Step/time.Second))
	return q
}

// Costs requests what money was spent on.
func (c *Client) Costs(ctx context.Context, f drover.CostFilter) (drover.Costs, error) {
	return answerTo[drover.Costs](ctx, c, call{path: []string{"cost"}, query: costQuery(f)})
}
