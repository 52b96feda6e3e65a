package control

import (
	"context"
	"io"
	"slices"
	"time"

	"drover"
	"drover/internal/logkey"
)

// maxInput is the size limit of one input file.
const maxInput = 1 << 40

// MissingInputs returns the hashes whose contents the caller has not sent, even if others have. In `drover run`, which
// has no callers, it returns those without contents.
func (c *Controller) MissingInputs(ctx context.Context, hashes []string) (missing []string, err error) {
	if user := drover.IdentityOf(ctx).User; user != "" {
		if missing, err = c.cfg.Store.MissingInputs(ctx, user, hashes); err != nil {
			return nil, err
		}
	}
	for _, h := range hashes {
		if !c.cfg.Inputs.Has(h) {
			missing = append(missing, h)
		}
	}
	slices.Sort(missing)
	return append([]string{}, slices.Compact(missing)...), nil
}

// PutInput stores contents under their hash, and the caller may use them from then on. The caller must send all of
// them even if they are stored already, to prove that it has them.
func (c *Controller) PutInput(ctx context.Context, hash string, contents io.Reader) error {
	user := drover.IdentityOf(ctx).User
	if user == "" {
		return orFull(c.cfg.Inputs.PutAs(ctx, hash, contents, maxInput))
	}
	up, err := c.beginUpload(ctx, user, contents)
	if err != nil {
		return err
	}
	defer up.end(ctx)
	if err := c.cfg.Inputs.PutAs(ctx, hash, up, maxInput); err != nil {
		return orFull(err)
	}
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	size, there := c.cfg.Inputs.Size(hash)
	if !there {
		return drover.Errorf(drover.KindTransient, "the file was removed while it was being uploaded").WithHint("send it again")
	}
	return c.cfg.Store.AddInput(ctx, c.clock.now(), user, drover.File{Hash: hash, Size: size})
}

// strayTime is how long contents are kept that no job uses.
const strayTime = 24 * time.Hour

// SweepInputs removes inputs that were sent at least a day before now and that no job uses.
func (c *Controller) SweepInputs(ctx context.Context, now time.Time) error {
	before := now.Add(-strayTime)
	if err := c.cfg.Store.ForgetInputs(ctx, drover.TimeOf(before)); err != nil {
		return err
	}
	return c.cfg.Inputs.Each(before, func(hashes []string) error {
		c.sweeping.Lock()
		defer c.sweeping.Unlock()
		strays, err := c.cfg.Store.StrayInputs(ctx, hashes)
		if err != nil {
			return err
		}
		for _, hash := range strays {
			if err := c.cfg.Inputs.Remove(hash); err != nil {
				return err
			}
			c.cfg.Log.Debug("an input that no job uses was deleted", logkey.Hash, hash)
		}
		return nil
	})
}
