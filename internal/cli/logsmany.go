package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"drover"
	"drover/internal/backoff"
)

// mostFollowed is how many elements are followed at once: a user and that user's jobs share 256 streams, and each
// element needs two.
const mostFollowed = 50

// newElements is how often it checks for elements that have begun.
const newElements = time.Second

// manyLogs shows the output of several jobs, each line with its element's name as a prefix.
type manyLogs struct {
	app    *app
	svc    drover.Service
	flags  logsFlags
	filter drover.JobFilter
	to     streams
	mu     sync.Mutex // held while a line is written
}

// show shows the existing output, one element after the other.
func (m *manyLogs) show(ctx context.Context) error {
	found := false
	for job, err := range allJobs(ctx, m.svc, m.elements()) {
		if err != nil {
			return err
		}
		found = true
		err := m.each(job, func(to streams) error { return m.app.copyLogs(ctx, m.svc, m.flags, job, to) })
		if err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	_, err := m.final(ctx) // is there any job?
	return err
}

// follow shows the jobs' output as they write it, until every job is final.
func (m *manyLogs) follow(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait() // after all are told to end
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, mostFollowed)
	begun := map[drover.JobID]bool{}
	for {
		final, err := m.final(ctx)
		if err != nil {
			return err
		}
		for job, err := range allJobs(ctx, m.svc, m.elements()) {
			if err != nil {
				return err
			}
			if begun[job.ID] {
				continue
			}
			begun[job.ID] = true
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			wg.Go(func() {
				err := m.each(job, func(to streams) error { return m.app.follow(ctx, m.svc, job.ID, to, m.flags) })
				if <-places; err != nil {
					cancel(err)
				}
			})
		}
		if final {
			wg.Wait()
			return context.Cause(ctx)
		}
		if err := backoff.For(ctx, newElements); err != nil {
			return context.Cause(ctx)
		}
	}
}

func (m *manyLogs) elements() drover.JobFilter {
	f := m.filter
	f.Elements, f.Tried = true, true
	return f
}

// final reports whether all of the jobs are final.
func (m *manyLogs) final(ctx context.Context) (bool, error) {
	some, final := false, true
	for job, err := range allJobs(ctx, m.svc, m.filter) {
		if err != nil {
			return false, err
		}
		some, final = true, final && job.State.Final()
	}
	if !some {
		return false, noBatch(m.filter.Batch)
	}
	return final, nil
}

// each calls do with the streams of one job or element.
func (m *manyLogs) each(job drover.Job, do func(streams) error) error {
	name := elementName(job.Name, job.ID.Index) + ": "
	out, err := &prefixed{to: m.to.out, prefix: name, mu: &m.mu}, &prefixed{to: m.to.err, prefix: name, mu: &m.mu}
	to := streams{}
	if m.to.out != nil {
		to.out = out
	}
	if m.to.err != nil {
		to.err = err
	}
	return errors.Join(do(to), out.flush(), err.flush())
}

// prefixed writes whole lines, each with a prefix. Several may share one writer.
type prefixed struct {
	to     io.Writer
	prefix string
	mu     *sync.Mutex
	line   []byte // the current incomplete line
}

// longestLine is how much is written of a line without an end.
const longestLine = 64 << 10

func (p *prefixed) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		p.line = append(p.line, part...)
		if p.line[len(p.line)-1] == '\n' || len(p.line) >= longestLine {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// flush writes the incomplete line.
func (p *prefixed) flush() error {
	if len(p.line) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.to, "%s%s\n", p.prefix, bytes.TrimSuffix(p.line, []byte("\n")))
	p.line = p.line[:0]
	return err
}

// tail keeps the last lines that are written to it.
type tail struct {
	most  int
	lines [][]byte // the last may be incomplete
}

func (t *tail) Write(b []byte) (int, error) {
	if t.most == 0 {
		return len(b), nil
	}
	for part := range bytes.Lines(b) {
		if n := len(t.lines); n == 0 || bytes.HasSuffix(t.lines[n-1], []byte("\n")) {
			t.lines = append(t.lines, nil)
		}
		if len(t.lines) > t.most {
			t.lines = t.lines[1:]
		}
		last := &t.lines[len(t.lines)-1]
		*last = append(*last, part...)
	}
	return len(b), nil
}

// print writes the lines.
func (t *tail) print(to io.Writer) error {
	_, err := to.Write(bytes.Join(t.lines, nil))
	return err
}
