package control

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// collect stores an ended attempt's output streams and outputs.
func (c *Controller) collect(ctx context.Context, f engine.Collect) error {
	spec, err := c.spec(ctx, f.Attempt.Job.Number)
	if err != nil {
		return err
	}
	l := c.link(f.Instance)
	if l == nil {
		return errNotConnected
	}
	exit, ok := l.exit(f.Attempt)
	if !ok {
		return errNotConnected
	}
	if !c.cfg.Shared {
		c.live.end(f.Attempt)
	}
	if err := c.cfg.Results.BeginLogs(c.folder(spec), f.Attempt.Job.Index, f.Attempt.Number); err != nil {
		return err
	}
	if err := c.collectLogs(ctx, l, f.Attempt, spec, exit); err != nil {
		return err
	}
	var files []drover.File
	var missing string
	if len(spec.Outputs) > 0 {
		if files, missing, err = c.collectOutputs(ctx, l, f.Attempt, spec); err != nil {
			return err
		}
	}
	if missing != "" && exit.Code == 0 && exit.Cause == "" {
		return drover.Errorf(drover.KindInvalid, "no file matches the required output %q", missing)
	}
	if c.cfg.Shared {
		c.tally.add(f.Attempt.Job, c.sizeOf(exit, files)+c.cfg.Results.Aside(c.folder(spec), f.Attempt.Job.Index, f.Attempt.Number))
	}
	return nil
}

// collectLogs stores both streams. A short stream came completely with the exit; of a long one it fetches the retained
// parts.
func (c *Controller) collectLogs(ctx context.Context, l *link, id drover.AttemptID, spec jobSpec, exit drover.Exit) error {
	// A section that is not read to its end occupies its channel until the context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for stream, name := range streams {
		tail, size := output(exit, stream)
		section := func(offset, n int64) (io.Reader, error) {
			if size == int64(len(tail)) {
				return strings.NewReader(tail[offset : offset+n]), nil
			}
			return l.conn.FetchLog(ctx, id, string(stream), offset, n)
		}
		if err := c.cfg.Results.WriteLog(ctx, c.folder(spec), id.Job.Index, name, size, section); err != nil {
			return fmt.Errorf("storing %s of attempt %v: %w", stream, id, err)
		}
	}
	return nil
}

// collectOutputs stores an attempt's outputs with warnings about them, and returns the first required pattern that
// matched nothing.
func (c *Controller) collectOutputs(ctx context.Context, l *link, id drover.AttemptID, spec jobSpec) (files []drover.File, missing string, err error) {
	absent, err := l.conn.Outputs(ctx, id, func(tar io.Reader) (err error) {
		files, err = c.cfg.Results.Receive(ctx, c.folder(spec), id.Job.Index, tar)
		return err
	})
	if err != nil {
		return nil, "", err // the engine says whose outputs could not be stored
	}
	var warnings []string
	for _, text := range absent.LeftOut {
		warnings = append(warnings, "output left out: "+text)
	}
	for _, i := range absent.Unmatched {
		if i < 0 || i >= len(spec.Outputs) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("no file matches the output pattern %q", spec.Outputs[i]))
		if missing == "" && slices.Contains(spec.Required, spec.Outputs[i]) {
			missing = spec.Outputs[i]
		}
	}
	if len(warnings) > 0 {
		c.cfg.Log.Warn("some outputs were left out", logkey.Attempt, id.String(), logkey.Note, strings.Join(warnings, "; "))
	}
	return files, missing, c.cfg.Store.PutOutputs(ctx, id, files, warnings)
}

func wrongSize(f drover.File, size int64) *drover.Error {
	return drover.Errorf(drover.KindInvalid, "input %s should have %d bytes, but has %d", f.Path, f.Size, size)
}
