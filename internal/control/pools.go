package control

import (
	"context"
	"slices"

	"drover"
	"drover/internal/engine"
)

// Pools lists the pools, each with its number under the key that it has in the configuration.
func (c *Controller) Pools(ctx context.Context) ([]drover.Pool, error) {
	pools := []drover.Pool{}
	err := c.Peek(ctx, func(e *engine.Engine) { pools = append(pools, e.Pools()...) })
	for i := range pools {
		switch p := &pools[i]; p.Kind {
		case drover.PoolSize:
			p.Size = new(p.Wanted)
		case drover.PoolFloor:
			p.Floor = new(p.Wanted)
		case drover.PoolSpare:
			p.Spare = new(p.Wanted)
		}
	}
	return pools, err
}

// ResizePool changes a pool's number of instances.
func (c *Controller) ResizePool(ctx context.Context, name string, count int, reason string) (drover.Pool, error) {
	if count < 0 || count > drover.MaxPool {
		return drover.Pool{}, drover.Errorf(drover.KindInvalid, "a pool cannot have %d instances", count).WithHint("write a number from 0 to %d", drover.MaxPool)
	}
	if _, err := c.pool(ctx, name); err != nil {
		return drover.Pool{}, err
	}
	why := drover.Reason{Code: drover.ReasonOperator, Text: asked(ctx, "resized", reason)}
	if err := c.wish(ctx, engine.ResizeAsked{Pool: name, Count: count, Reason: why}); err != nil {
		return drover.Pool{}, err
	}
	return c.pool(ctx, name)
}

func (c *Controller) pool(ctx context.Context, name string) (drover.Pool, error) {
	pools, err := c.Pools(ctx)
	if err != nil {
		return drover.Pool{}, err
	}
	at := slices.IndexFunc(pools, func(p drover.Pool) bool { return p.Name == name })
	if at < 0 {
		return drover.Pool{}, drover.Errorf(drover.KindNotFound, "there is no pool %.80q", name).WithHint("drover pools lists all pools")
	}
	return pools[at], nil
}
