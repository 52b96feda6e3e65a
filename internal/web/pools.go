package web

import (
	"context"
	"maps"
	"slices"

	"drover"
)

// poolList is all pools.
type poolList struct{ Pools []drover.Pool }

func (h *Handler) pools(ctx context.Context, r *request) (any, error) {
	pools, err := r.svc.Pools(ctx)
	return poolList{pools}, err
}

// poolPage is one pool.
type poolPage struct {
	drover.Pool
	Zones   []zoneCount
	Explain []drover.Explanation
}

// zoneCount is how many of a pool's instances a zone has.
type zoneCount struct {
	Zone      string
	Instances int
}

func (p poolPage) title() string { return "Pool " + p.Name }

func (h *Handler) pool(ctx context.Context, r *request) (any, error) {
	all, err := r.svc.Pools(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(p drover.Pool) bool { return p.Name == r.PathValue("name") })
	if at < 0 {
		return nil, drover.Errorf(drover.KindNotFound, "there is no pool %.80q", r.PathValue("name"))
	}
	p := poolPage{Pool: all[at]}
	for _, zone := range slices.Sorted(maps.Keys(p.ByZone)) {
		p.Zones = append(p.Zones, zoneCount{zone, p.ByZone[zone]})
	}
	if p.Explain, err = r.svc.Explain(ctx, "pool/"+p.Name); err != nil && drover.KindOf(err) != drover.KindNotFound {
		return nil, err
	}
	return p, nil
}
