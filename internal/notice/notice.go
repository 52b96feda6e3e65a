// Package notice watches what a cloud tells an instance: that it is about to be taken back.
//
// Each cloud has its own way to say so to programs on the instance: a [Source] is one of them, and [Watch] polls it.
// What a metadata server says is not trusted: answers are bounded in size and time, and an error says nothing about
// notices, neither that there is one nor that there is none.
//
// Metadata servers answer at a link-local address and nowhere else, without a proxy, over plain HTTP; this package
// speaks as much of that as it takes, since net/http would nearly double the program that is put on every instance.
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
	// Notice returns the notice that stands, nil if none does. It may wait some seconds for that to change. A notice
	// whose time the cloud does not say has a Deadline that its custom implies, or none.
	Notice(ctx context.Context) (*drover.Notice, error)
	// Pause is the time between two questions.
	Pause() time.Duration
}

// FileVariable is the environment variable that names the file of notices, where that is the source.
const FileVariable = "DROVER_NOTICES"

// Open returns the source of a kind, by the names that drivers give them: "ec2", "gce", "azure" or "file".
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
	return nil, fmt.Errorf("unknown source of notices %.40q", kind)
}

const (
	// usualPause is short beside the warning of two minutes that most clouds give, and costs them and the instance next
	// to nothing.
	usualPause = 5 * time.Second
	// longestPause is how long a source that fails is left alone at most.
	longestPause = 30 * time.Second
)

// Watch asks the source until ctx ends. It tells the first answer, nil for no notice, and from then on each that
// differs. What fails is logged when it begins to fail.
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

// custom is a notice whose time the cloud does not say, with the warning that it is known to give, counted from when it
// was first seen.
type custom struct {
	cause string
	since time.Time
}

// notice is what stands for a cause, seen now; empty for none.
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
