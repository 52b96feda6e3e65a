package control

import (
	"context"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// switchInstance has a cloud stop an instance, or start it again.
func (c *Controller) switchInstance(ctx context.Context, effect int64, f engine.Switch) engine.Body {
	answer := engine.Switched{Effect: effect, Instance: f.Instance}
	if err := c.trySwitch(ctx, f); err != nil {
		answer.Err = drover.AsError(err, drover.KindTransient)
	}
	return answer
}

func (c *Controller) trySwitch(ctx context.Context, f engine.Switch) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return drover.Errorf(drover.KindTransient, "%v", err) // no word of the cloud's
	}
	s, can := driver.As[driver.Starter](cl.own)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "cloud %s cannot stop instances", f.Cloud)
	}
	cl.own.Adopt(f.ProviderID)
	if f.On {
		ctx, cancel := context.WithTimeout(ctx, createTimeout)
		defer cancel()
		return s.Start(ctx, f.ProviderID)
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	if err = s.Stop(ctx, f.ProviderID); err == nil {
		cl.moved(f.ProviderID)
	}
	return err
}

// moved forgets where an instance could be reached, since another may have its address soon. The next list that shows
// an address is news.
func (cl *cloudView) moved(id string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, known := range []map[string]driver.Instance{cl.seen, cl.created} {
		if in, ok := known[id]; ok {
			in.Addresses = driver.Addresses{}
			known[id] = in
		}
	}
}
