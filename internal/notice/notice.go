// Package notice watches for a cloud's notice that it will reclaim the instance.
//
// Each cloud has its own way to notify programs on the instance: a [Source] implements one, and [Watch] polls it.
// Metadata servers are not trusted: answers are bounded in size and time, and an error means neither that there is a
// notice nor that there is none.
//
// Metadata servers answer only at a link-local address, without a proxy, over plain HTTP. This package implements as
// much HTTP as that needs, since net/http would nearly double the size of the program on every instance.
package notice

import (
	"context"
	"fmt"
	"os"
	"time"

	"drover"
	"drover/internal/backoff"
)

// Source is where one cloud's notices are read.
type Source interface {
	// Notice returns the notice in force, nil if there is none. It may wait some seconds for a change. If the cloud
	// gives no time, the Deadline is the end of the cloud's usual warning, or zero.
	Notice(ctx context.Context) (*drover.Notice, error)
	// Pause returns the time to wait between two calls of Notice.
	Pause() time.Duration
}

// FileVariable is the environment variable that names the file of the "file" source.
const FileVariable = "DROVER_NOTICES"

// Open returns the source of a kind, by the names that drivers use: "ec2", "gce", "azure" or "file".
func Open(kind string) (Source, error) {
	switch kind {
	case "ec2":
		return NewEC2(metadataURL)
	case "gce":
		return NewGCE(metadataURL)
	case "azure":
		return NewAzure(metadataURL)
	case "file":
		return NewFile(os.Getenv(FileVariable))
	}
	return nil, fmt.Errorf("unknown notice source %.40q", kind)
}

const (
	// usualPause is short compared with the warning of two minutes that most clouds give, and costs the cloud and the
	// instance almost nothing.
	usualPause = 5 * time.Second
	// longestPause bounds the pause after failures of a source.
	longestPause = 30 * time.Second
)

// Watch polls the source until ctx ends. It passes tell the first answer, nil for no notice, and after that each answer
// that differs. It logs only the first of several failures in a row.
func Watch(ctx context.Context, s Source, tell func(*drover.Notice), logf func(format string, args ...any)) {
	var told *drover.Notice
	first := true
	for failures := 0; ctx.Err() == nil; {
		n, err := s.Notice(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if failures++; failures == 1 {
				logf("asking for the cloud's notices: %v", err)
			}
		default:
			failures = 0
			if first || !same(told, n) {
				first, told = false, n
				tell(n)
			}
		}
		_ = backoff.For(ctx, min(s.Pause()<<min(failures, 8), longestPause))
	}
}

func same(a, b *drover.Notice) bool { return a == b || a != nil && b != nil && *a == *b }

// custom is a notice for which the cloud gives no time. Its deadline is the cloud's usual warning after it was first
// seen.
type custom struct {
	cause string
	since time.Time
}

// notice returns the notice for a cause seen now; nil if cause is empty.
func (c *custom) notice(cause string, warning time.Duration) *drover.Notice {
	if cause == "" {
		*c = custom{}
		return nil
	}
	if c.cause != cause {
		*c = custom{cause, time.Now()}
	}
	return &drover.Notice{Cause: cause, Deadline: drover.TimeOf(c.since.Add(warning))}
}
