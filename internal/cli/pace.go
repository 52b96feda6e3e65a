package cli

import (
	"context"
	"io"
	"time"

	"drover"
	"drover/internal/backoff"
	"drover/internal/httpapi"
)

// paced is a Service that repeats calls after the controller's rate limit refused them. It covers the calls that
// commands make in a row; a refused call had no effect.
type paced struct{ *httpapi.Client }

// longestPause limits the pause that a controller may request without the command reporting the error.
const longestPause = time.Minute

// inTime makes a call, and repeats it when the controller allows.
func inTime[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		v, err := ask()
		if err == nil {
			return v, nil
		}
		e := drover.AsError(err, drover.KindInternal)
		pause := time.Until(e.RetryAt.Std())
		if e.Kind != drover.KindRateLimit || e.RetryAt == 0 || pause > longestPause {
			return v, err
		}
		if backoff.For(ctx, max(pause, time.Millisecond)) != nil {
			return v, err
		}
	}
}

func (p paced) Jobs(ctx context.Context, f drover.JobFilter) (drover.Page[drover.Job], error) {
	return inTime(ctx, func() (drover.Page[drover.Job], error) { return p.Client.Jobs(ctx, f) })
}

func (p paced) Job(ctx context.Context, id drover.JobID) (drover.Job, error) {
	return inTime(ctx, func() (drover.Job, error) { return p.Client.Job(ctx, id) })
}

func (p paced) Cancel(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return inTime(ctx, func() (drover.Job, error) { return p.Client.Cancel(ctx, id, reason) })
}

func (p paced) Retry(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return inTime(ctx, func() (drover.Job, error) { return p.Client.Retry(ctx, id, reason) })
}

func (p paced) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, reason string) (drover.Job, error) {
	return inTime(ctx, func() (drover.Job, error) { return p.Client.RetryWith(ctx, id, batch, reason) })
}

func (p paced) SetPriority(ctx context.Context, id drover.JobID, priority int) (drover.Job, error) {
	return inTime(ctx, func() (drover.Job, error) { return p.Client.SetPriority(ctx, id, priority) })
}

func (p paced) SetPaused(ctx context.Context, paused bool, reason string) (drover.Status, error) {
	return inTime(ctx, func() (drover.Status, error) { return p.Client.SetPaused(ctx, paused, reason) })
}

func (p paced) Outputs(ctx context.Context, id drover.JobID) ([]drover.File, error) {
	return inTime(ctx, func() ([]drover.File, error) { return p.Client.Outputs(ctx, id) })
}

func (p paced) OpenOutput(ctx context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	return inTime(ctx, func() (io.ReadCloser, error) { return p.Client.OpenOutput(ctx, id, path, from) })
}

func (p paced) Logs(ctx context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	return inTime(ctx, func() (io.ReadCloser, error) { return p.Client.Logs(ctx, r) })
}

func (p paced) Instance(ctx context.Context, name string) (drover.Instance, error) {
	return inTime(ctx, func() (drover.Instance, error) { return p.Client.Instance(ctx, name) })
}

func (p paced) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	return inTime(ctx, func() (drover.Instance, error) { return p.Client.Instruct(ctx, name, verb, reason) })
}

func (p paced) Instances(ctx context.Context, f drover.InstanceFilter) (drover.Page[drover.Instance], error) {
	return inTime(ctx, func() (drover.Page[drover.Instance], error) { return p.Client.Instances(ctx, f) })
}
