package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"drover"
	"drover/internal/engine"
	"drover/internal/store"
)

// Submit accepts a batch: see [drover.Queue].
func (c *Controller) Submit(ctx context.Context, s drover.Submission) (drover.Receipt, error) {
	if c.full.Load() != nil {
		return drover.Receipt{}, fmt.Errorf("accepting jobs: %w", store.ErrFull)
	}
	numbers, done, err := c.cfg.Store.Submitted(ctx, s)
	if err == nil && !done {
		if err = c.limits().CheckBatch(s.Batch); err == nil {
			err = c.checkBatch(ctx, s.Batch)
		}
		if err == nil {
			numbers, err = c.cfg.Store.Submit(ctx, s, c.terms(ctx))
		}
	}
	if err != nil {
		return drover.Receipt{}, err
	}
	c.inbox.nudge()
	r := drover.Receipt{Batch: s.Batch.Name}
	for i, spec := range s.Batch.Jobs {
		r.Jobs = append(r.Jobs, drover.SubmittedJob{ID: drover.JobID{Number: numbers[i], Index: -1}, Name: spec.Name, Elements: spec.Array.Size()})
	}
	return r, nil
}

// checkBatch refuses a batch that could never run or is missing inputs. Nobody learns what others have sent.
func (c *Controller) checkBatch(ctx context.Context, b drover.Batch) error {
	unsent, err := c.unsent(ctx, b)
	if err != nil {
		return err
	}
	for _, spec := range b.Jobs {
		for _, f := range spec.Files {
			size, there := c.cfg.Inputs.Size(f.Hash)
			switch {
			case !there || unsent[f.Hash]:
				return store.NoInput(spec.Name, f)
			case size != f.Size:
				err := wrongSize(f, size)
				return drover.Errorf(err.Kind, "job %s: %s", spec.Name, err.Message).WithHint("write size: %d", size)
			}
		}
	}
	var offerings []drover.Offering
	known := false
	if err := c.Query(ctx, func(e *engine.Engine) { offerings, known = e.Catalogue() }); err != nil || !known {
		return err
	}
	return fits(b, offerings, c.leftOut())
}

// unsent returns the inputs of a batch that neither the caller nor the batch's user has sent.
func (c *Controller) unsent(ctx context.Context, b drover.Batch) (map[string]bool, error) {
	asks := drover.IdentityOf(ctx).User
	if asks == "" {
		return nil, nil
	}
	hashes := map[string]bool{}
	for _, spec := range b.Jobs {
		for _, f := range spec.Files {
			hashes[f.Hash] = true
		}
	}
	for _, user := range []string{asks, b.User} {
		if len(hashes) == 0 {
			return nil, nil
		}
		missing, err := c.cfg.Store.MissingInputs(ctx, user, slices.Collect(maps.Keys(hashes)))
		if err != nil {
			return nil, err
		}
		clear(hashes)
		for _, hash := range missing {
			hashes[hash] = true
		}
	}
	return hashes, nil
}

// fits refuses a job that no offering can hold. It checks jobs of one shape once.
func fits(b drover.Batch, offerings []drover.Offering, leftOut []drover.LeftOut) error {
	judged := map[drover.Shape]bool{}
	for _, spec := range b.Jobs {
		shape := drover.Shape{Need: spec.Resources, Placement: spec.Placement, Spot: spec.Spot}
		if judged[shape] {
			continue
		}
		judged[shape] = true
		if miss := shape.NearestMiss(offerings, leftOut...); miss != "" {
			return drover.Errorf(drover.KindInvalid, "no configured type can run job %s: %s", spec.Name, miss).WithHint("drover offers --all lists all types")
		}
	}
	return nil
}

// Jobs lists jobs. Waiting jobs include the reason why they wait.
func (c *Controller) Jobs(ctx context.Context, f drover.JobFilter) (page drover.Page[drover.Job], err error) {
	f.Limit = pageSize(f.Limit)
	if f.Mine && f.User == "" {
		f.User = drover.IdentityOf(ctx).User
	}
	if f.Newest && f.Elements {
		return page, drover.Errorf(drover.KindInvalid, "elements cannot be listed newest first").WithHint("leave out elements or newest")
	}
	items, next, err := c.cfg.Store.JobsPage(ctx, c.clock.now(), f)
	page.Items = items
	if next.Number != 0 {
		page.Next = next.String()
	}
	c.addReasons(ctx, page.Items)
	return page, err
}

// addReasons adds to waiting jobs the first reason why they wait, with one query for all of them.
func (c *Controller) addReasons(ctx context.Context, jobs []drover.Job) {
	var at []int
	var ids []drover.JobID
	for i, j := range jobs {
		if j.State == drover.JobQueued && j.Reason == nil {
			at, ids = append(at, i), append(ids, j.ID)
		}
	}
	var all []*drover.Reason
	if len(ids) == 0 || c.Peek(ctx, func(e *engine.Engine) { all = e.WhyWait(ids) }) != nil {
		return
	}
	for i, why := range all {
		jobs[at[i]].Reason = why
	}
}

func pageSize(limit int) int {
	if limit <= 0 || limit > drover.MaxPage {
		return drover.MaxPage
	}
	return limit
}

// Job returns one job. If it is waiting, it includes the reason.
func (c *Controller) Job(ctx context.Context, id drover.JobID) (drover.Job, error) {
	job, err := c.stored(ctx, id)
	one := []drover.Job{job}
	if err == nil {
		c.addReasons(ctx, one)
	}
	return one[0], err
}

// stored returns one job without the reason for which it waits.
func (c *Controller) stored(ctx context.Context, id drover.JobID) (drover.Job, error) {
	return c.cfg.Store.Job(ctx, c.clock.now(), id)
}

// Cancel ends a job.
func (c *Controller) Cancel(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	job, life, err := c.cfg.Store.JobLife(ctx, c.clock.now(), id)
	if err != nil || job.State.Final() {
		return job, err
	}
	wish := engine.CancelAsked{Job: id, Again: life, Reason: drover.Reason{Code: drover.ReasonCancelled, Text: asked(ctx, "cancelled", reason)}}
	if err := c.wish(ctx, wish); err != nil {
		return job, err
	}
	return c.Job(ctx, id)
}

// CancelAll ends every job.
func (c *Controller) CancelAll(ctx context.Context, reason string) error {
	return c.wish(ctx, engine.CancelAsked{All: true, Reason: drover.Reason{Code: drover.ReasonCancelled, Text: reason}})
}

// Retry requeues a final job.
func (c *Controller) Retry(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	if err := c.cfg.Store.Retry(ctx, id, c.limits()); err != nil {
		return drover.Job{}, err
	}
	return c.queuedAgain(ctx, id, reason)
}

// RetryWith requeues a final job with its specification in the batch.
func (c *Controller) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, reason string) (drover.Job, error) {
	job, err := c.stored(ctx, id)
	if err != nil {
		return job, err
	}
	spec, err := batch.Job(job.Name)
	if err != nil {
		return job, err
	}
	if err := c.checkBatch(ctx, drover.Batch{Name: batch.Name, User: job.User, Jobs: []drover.JobSpec{spec}}); err != nil {
		return job, err
	}
	if err := c.cfg.Store.RetryWith(ctx, id, batch, c.terms(ctx)); err != nil {
		return drover.Job{}, err
	}
	c.mu.Lock()
	delete(c.specs, id.Number)
	c.mu.Unlock()
	return c.queuedAgain(ctx, id, reason)
}

func (c *Controller) queuedAgain(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	c.inbox.nudge()
	c.note(engine.Note{Level: engine.Info, Text: "job " + id.String() + " is " + asked(ctx, "queued again", reason), Job: &id})
	return c.Job(ctx, id)
}

// SetPriority changes a job's priority.
func (c *Controller) SetPriority(ctx context.Context, id drover.JobID, priority int) (drover.Job, error) {
	whole := drover.JobID{Number: id.Number, Index: -1}
	job, life, err := c.cfg.Store.JobLife(ctx, c.clock.now(), whole)
	switch {
	case err != nil:
		return job, err
	case id.Index >= 0:
		return job, drover.Errorf(drover.KindInvalid, "a priority applies to a whole job, not to an element").WithHint("drover priority %d %d", id.Number, priority)
	case priority < 0 || priority > drover.MaxPriority:
		return job, drover.Errorf(drover.KindInvalid, "priority %d is not between 0 and %d", priority, drover.MaxPriority)
	case job.State.Final():
		return job, drover.Errorf(drover.KindConflict, "job %v has already ended (%s)", id, job.State)
	}
	text := asked(ctx, fmt.Sprintf("its priority was set to %d", priority), "")
	wish := engine.PriorityAsked{Job: id.Number, Again: life, Priority: priority, Reason: drover.Reason{Code: drover.ReasonPreempted, Text: text}}
	if err := c.wish(ctx, wish); err != nil {
		return job, err
	}
	return c.Job(ctx, whole)
}

// SetPaused pauses or resumes the queue.
func (c *Controller) SetPaused(ctx context.Context, paused bool, reason string) (drover.Status, error) {
	what := "the queue was resumed"
	if paused {
		what = "the queue is paused"
	}
	wish := engine.QueueAsked{Resume: !paused, Reason: drover.Reason{Code: drover.ReasonPaused, Text: asked(ctx, what, reason)}}
	if err := c.wish(ctx, wish); err != nil {
		return drover.Status{}, err
	}
	return c.Status(ctx)
}

// asked describes who requested something, and why.
func asked(ctx context.Context, what, reason string) string {
	if by := drover.IdentityOf(ctx).User; by != "" {
		what += " by " + by
	}
	if reason != "" {
		what += ": " + reason
	}
	return what
}

// Outputs lists a job's outputs.
func (c *Controller) Outputs(ctx context.Context, id drover.JobID) ([]drover.File, error) {
	return c.cfg.Store.OutputsOf(ctx, id)
}

// OpenOutput reads one of a job's outputs from an offset on.
func (c *Controller) OpenOutput(ctx context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	files, err := c.cfg.Store.OutputsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	spec, err := c.spec(ctx, id.Number)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Path == path {
			file, err := c.cfg.Results.OpenOutput(c.folder(spec), id.Index, f)
			if err != nil {
				return nil, err
			}
			return seek(file, from)
		}
	}
	return nil, drover.Errorf(drover.KindNotFound, "job %v has no output %.200q", id, path)
}

// seek positions a file at an offset.
func seek(file io.ReadSeekCloser, from int64) (io.ReadCloser, error) {
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// folder returns the folder of the job's results.
func (c *Controller) folder(spec jobSpec) string {
	if c.cfg.Shared {
		return strconv.FormatInt(spec.number, 10)
	}
	return spec.Name
}
