package control

import (
	"context"
	"io"
	"maps"
	"sync"
	"time"

	"drover"
	"drover/internal/backoff"
	"drover/internal/logkey"
	"drover/internal/store"
)

// block is the smallest size of a file on disk.
const block = 4096

// limits returns the limits of each user. A run has only one user, and no limits.
func (c *Controller) limits() drover.UserLimits {
	if !c.cfg.Shared {
		return drover.UserLimits{}
	}
	return c.current().Limits
}

func (c *Controller) terms(ctx context.Context) store.Terms {
	return store.Terms{Sender: drover.IdentityOf(ctx).User, Limits: c.limits()}
}

// uploads counts what users are sending, so that concurrent files together stay within the limit.
type uploads struct {
	mu    sync.Mutex
	users map[string]*sending // guarded by mu
}

// sending is the amount that one user is sending, in addition to what was sent before.
type sending struct {
	files  int
	sent   drover.Bytes
	coming drover.Bytes
}

// upload is one file being sent.
type upload struct {
	c     *Controller
	user  string
	from  io.Reader
	read  drover.Bytes
	count drover.Bytes // its counted size
}

// beginUpload counts a file until its end is called.
func (c *Controller) beginUpload(ctx context.Context, user string, from io.Reader) (*upload, error) {
	c.uploads.mu.Lock()
	defer c.uploads.mu.Unlock()
	s := c.uploads.users[user]
	if s == nil {
		used, err := c.cfg.Store.Usage(ctx, user)
		if err != nil {
			return nil, err
		}
		s = &sending{sent: used.Inputs}
		c.uploads.users[user] = s
	}
	s.files++
	u := &upload{c: c, user: user, from: from, count: block}
	s.coming += u.count
	return u, nil
}

// Read reads as long as the user's inputs stay within the limit.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	limits := u.c.limits()
	u.c.uploads.mu.Lock()
	defer u.c.uploads.mu.Unlock()
	s := u.c.uploads.users[u.user]
	u.read += drover.Bytes(n)
	if more := u.read - u.count; more > 0 {
		u.count += more
		s.coming += more
	}
	if over := limits.CheckInputs(u.user, s.sent+s.coming); over != nil {
		return 0, over
	}
	return n, err
}

// end stops counting the file as being sent. If it was accepted, it counts as sent from now on.
func (u *upload) end(ctx context.Context) {
	u.c.uploads.mu.Lock()
	defer u.c.uploads.mu.Unlock()
	s := u.c.uploads.users[u.user]
	s.coming -= u.count
	if s.files--; s.files == 0 {
		delete(u.c.uploads.users, u.user)
		return
	}
	if used, err := u.c.cfg.Store.Usage(context.WithoutCancel(ctx), u.user); err == nil {
		s.sent = used.Inputs
	}
}

// tally is the size of recently stored results. It is recorded once a second, since a commit for each would take as
// long as the results. A crash loses what is not recorded.
type tally struct {
	mu    sync.Mutex
	bytes map[drover.JobID]int64 // guarded by mu
}

func (t *tally) add(id drover.JobID, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes[id] = bytes
}

func (t *tally) take() map[drover.JobID]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.bytes
	t.bytes = map[drover.JobID]int64{}
	return taken
}

// restore restores what could not be recorded, unless there is something newer.
func (t *tally) restore(bytes map[drover.JobID]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(bytes, t.bytes)
	t.bytes = bytes
}

const tallyInterval = time.Second

// keepTally records the size of results until ctx ends, and then the rest.
func (c *Controller) keepTally(ctx context.Context) {
	write := func() { c.writeTally(context.WithoutCancel(ctx)) }
	backoff.Every(ctx, tallyInterval, write)
	write()
}

func (c *Controller) writeTally(ctx context.Context) {
	bytes := c.tally.take()
	if len(bytes) == 0 {
		return
	}
	if err := c.cfg.Store.PutResults(ctx, bytes); err != nil {
		c.cfg.Log.Warn("sizes of results cannot be recorded", logkey.Error, err)
		c.tally.restore(bytes)
	}
}

// sizeOf returns the size of an attempt's logs and outputs.
func (c *Controller) sizeOf(exit drover.Exit, files []drover.File) (bytes int64) {
	for stream := range streams {
		if _, size := output(exit, stream); size > 0 {
			bytes += max(block, min(size, c.cfg.Results.LogLimit()))
		}
	}
	for _, f := range files {
		bytes += max(block, f.Size)
	}
	return bytes
}

// Recount finds results that somebody has deleted, for users who are over the limit, and stops counting them.
func (c *Controller) Recount(ctx context.Context) error {
	most := c.limits().Results
	if most == 0 {
		return nil
	}
	users, err := c.cfg.Store.UsersOver(ctx, most)
	if err != nil {
		return err
	}
	for _, user := range users {
		ids, err := c.cfg.Store.ResultsOf(ctx, user)
		if err != nil {
			return err
		}
		gone := map[drover.JobID]int64{}
		for _, id := range ids {
			spec, err := c.spec(ctx, id.Number)
			if err != nil {
				return err
			}
			if !c.cfg.Results.Has(c.folder(spec), id.Index) {
				gone[id] = 0
			}
		}
		if len(gone) == 0 {
			continue
		}
		if err := c.cfg.Store.PutResults(ctx, gone); err != nil {
			return err
		}
	}
	return nil
}
