package web

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"drover"
)

// poolList is the page of all pools.
type poolList struct {
	Pools   []poolRow
	Groups  bool // some are node groups
	Stopped bool // some keep stopped instances
	Spare   bool // some are spare pools
}

// poolRow is a pool, in a list or on its own page.
type poolRow struct{ drover.Pool }

// Group reports whether it is a node group, whose size people cannot set.
func (p poolRow) Group() bool { return p.Kind == drover.PoolGroup }

// KeepsStopped reports whether it keeps instances stopped, or has some.
func (p poolRow) KeepsStopped() bool { return p.Keeps+p.Stopped > 0 }

// Spare reports whether the number that it wants is of idle instances.
func (p poolRow) Spare() bool { return p.Kind == drover.PoolSpare }

// Used returns how many of its ready instances are in use.
func (p poolRow) Used() int { return p.Ready - p.Idle }

func (h *Handler) pools(ctx context.Context, r *request) (any, error) {
	pools, err := r.svc.Pools(ctx)
	list := poolList{}
	for _, p := range pools {
		row := poolRow{p}
		list.Pools, list.Groups = append(list.Pools, row), list.Groups || row.Group()
		list.Stopped, list.Spare = list.Stopped || row.KeepsStopped(), list.Spare || row.Spare()
	}
	return list, err
}

// poolPage is one pool.
type poolPage struct {
	poolRow
	Zones   []zoneCount
	Explain []drover.Explanation
	Members []drover.Instance
	Others  bool // there are more
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
	p := poolPage{poolRow: poolRow{all[at]}}
	for _, zone := range slices.Sorted(maps.Keys(p.ByZone)) {
		p.Zones = append(p.Zones, zoneCount{zone, p.ByZone[zone]})
	}
	if p.Explain, err = r.svc.Explain(ctx, "pool/"+p.Name); err != nil && drover.KindOf(err) != drover.KindNotFound {
		return nil, err
	}
	return p, p.addMembers(ctx, r)
}

// addMembers adds the pool's newest live instances. No filter selects those of a pool, so it reads on until it has them.
func (p *poolPage) addMembers(ctx context.Context, r *request) error {
	f := drover.InstanceFilter{Newest: true}
	for {
		page, err := r.svc.Instances(ctx, f)
		if err != nil {
			return err
		}
		for _, in := range page.Items {
			switch {
			case in.Pool != p.Name:
			case len(p.Members) == instancesShown:
				p.Others = true
				return nil
			default:
				p.Members = append(p.Members, in)
			}
		}
		if page.Next == "" {
			return nil
		}
		if f.After, err = strconv.ParseInt(page.Next, 10, 64); err != nil {
			return drover.Errorf(drover.KindInternal, "%v", err)
		}
	}
}
