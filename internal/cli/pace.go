package cli

import (
	"context"
	"io"

	"drover"
	"drover/internal/httpapi"
)

// paced is a Service that repeats the calls that commands make in a row while the controller's rate limit refuses them
// and, as long as the command is to wait for it, while the controller does not answer.
type paced struct {
	*httpapi.Client
	app *app
}

// inTime makes a call, and repeats it as paced says.
func inTime[T any](ctx context.Context, a *app, ask func() (T, error)) (answer T, err error) {
	err = a.patiently(ctx, func() error {
		answer, err = ask()
		return err
	})
	return answer, err
}

func (p paced) Jobs(ctx context.Context, f drover.JobFilter) (drover.Page[drover.Job], error) {
	return inTime(ctx, p.app, func() (drover.Page[drover.Job], error) { return p.Client.Jobs(ctx, f) })
}

func (p paced) Job(ctx context.Context, id drover.JobID) (drover.Job, error) {
	return inTime(ctx, p.app, func() (drover.Job, error) { return p.Client.Job(ctx, id) })
}

func (p paced) Submit(ctx context.Context, s drover.Submission) (drover.Receipt, error) {
	return inTime(ctx, p.app, func() (drover.Receipt, error) { return p.Client.Submit(ctx, s) })
}

func (p paced) MissingInputs(ctx context.Context, hashes []string) ([]string, error) {
	return inTime(ctx, p.app, func() ([]string, error) { return p.Client.MissingInputs(ctx, hashes) })
}

func (p paced) Cancel(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return inTime(ctx, p.app, func() (drover.Job, error) { return p.Client.Cancel(ctx, id, reason) })
}

func (p paced) Retry(ctx context.Context, id drover.JobID, reason string) (drover.Job, error) {
	return inTime(ctx, p.app, func() (drover.Job, error) { return p.Client.Retry(ctx, id, reason) })
}

func (p paced) RetryWith(ctx context.Context, id drover.JobID, batch drover.Batch, reason string) (drover.Job, error) {
	return inTime(ctx, p.app, func() (drover.Job, error) { return p.Client.RetryWith(ctx, id, batch, reason) })
}

func (p paced) SetPriority(ctx context.Context, id drover.JobID, priority int) (drover.Job, error) {
	return inTime(ctx, p.app, func() (drover.Job, error) { return p.Client.SetPriority(ctx, id, priority) })
}

func (p paced) SetPaused(ctx context.Context, paused bool, reason string) (drover.Status, error) {
	return inTime(ctx, p.app, func() (drover.Status, error) { return p.Client.SetPaused(ctx, paused, reason) })
}

func (p paced) Outputs(ctx context.Context, id drover.JobID) ([]drover.File, error) {
	return inTime(ctx, p.app, func() ([]drover.File, error) { return p.Client.Outputs(ctx, id) })
}

func (p paced) OpenOutput(ctx context.Context, id drover.JobID, path string, from int64) (io.ReadCloser, error) {
	return inTime(ctx, p.app, func() (io.ReadCloser, error) { return p.Client.OpenOutput(ctx, id, path, from) })
}

func (p paced) Logs(ctx context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	return inTime(ctx, p.app, func() (io.ReadCloser, error) { return p.Client.Logs(ctx, r) })
}

func (p paced) Instance(ctx context.Context, name string) (drover.Instance, error) {
	return inTime(ctx, p.app, func() (drover.Instance, error) { return p.Client.Instance(ctx, name) })
}

func (p paced) Instruct(ctx context.Context, name string, verb drover.Verb, reason string) (drover.Instance, error) {
	return inTime(ctx, p.app, func() (drover.Instance, error) { return p.Client.Instruct(ctx, name, verb, reason) })
}

func (p paced) Instances(ctx context.Context, f drover.InstanceFilter) (drover.Page[drover.Instance], error) {
	return inTime(ctx, p.app, func() (drover.Page[drover.Instance], error) { return p.Client.Instances(ctx, f) })
}
