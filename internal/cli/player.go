package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/human"
	"drover/internal/record"
)

// player replays segments, one after the other, up to where it is to stop or where a decision differs.
type player struct {
	app     *app
	list    bool // show every event
	timed   bool // stop at until or, if that is 0, so long after the beginning
	until   drover.Time
	after   time.Duration
	subject *record.Subject // stop at what concerns it; when timed, or listing, look at nothing else; may be nil

	segments []playedSegment
	first    drover.Time // the recording's first event
	now      drover.Time // the last
	events   int
	moment   *moment // where it has stopped
	stopped  bool

	began time.Time // of this replay
	said  time.Time // when it last said how far it is
}

// playedSegment is how the replay of one segment went.
type playedSegment struct {
	Segment  string      `json:"segment"`
	Program  string      `json:"program"`
	Settings string      `json:"settings"`
	Began    drover.Time `json:"began"`
	Ended    drover.Time `json:"ended"`
	Events   int         `json:"events"` // decided the same
	Cut      bool        `json:"cut"`
	Differs  *moment     `json:"differs,omitempty"`
}

// play replays one segment.
func (p *player) play(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := playedSegment{Segment: path}
	err = p.steps(ctx, file, &s)
	if errors.Is(err, record.ErrCut) {
		s.Cut, err = true, nil
	}
	p.segments = append(p.segments, s)
	return p.otherVersion(err, s.Program)
}

// steps decides every event of a segment.
func (p *player) steps(ctx context.Context, file *os.File, s *playedSegment) error {
	r, err := record.NewReader(file)
	if err != nil {
		return err
	}
	s.Program, s.Settings = r.Header.Program, r.Header.Settings
	e, err := beginAgain(r.State)
	if err != nil {
		return err
	}
	for step, err := range r.Steps(e) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := p.take(e, s, step); err != nil || p.stopped {
			return err
		}
	}
	return nil
}

// beginAgain makes the engine that decides again. A State that no controller recorded may be beyond it.
func beginAgain(s engine.State) (e *engine.Engine, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = drover.Errorf(drover.KindInvalid, "the engine cannot begin with the recording's state: %v", why)
		}
	}()
	return engine.New(s)
}

// take takes in one event that was decided again.
func (p *player) take(e *engine.Engine, s *playedSegment, step record.Step) error {
	p.now = step.Event.At
	if p.first == 0 {
		p.first = p.now
	}
	if s.Began == 0 {
		s.Began = p.now
	}
	s.Ended = p.now
	concerned := p.subject == nil || p.subject.In(e, step.Event, step.Decision)
	if p.list && concerned {
		if err := p.app.showStep(s.Segment, step); err != nil {
			return err
		}
	}
	switch {
	case !step.Same():
		p.stopped, s.Differs = true, p.stop(e, s, step)
		return nil
	case p.isDue(concerned):
		p.stopped, p.moment = true, p.stop(e, s, step)
	}
	s.Events++
	p.events++
	p.sayHowFar()
	return nil
}

// isDue reports whether this is where to stop.
func (p *player) isDue(concerned bool) bool {
	switch {
	case p.timed && p.until != 0:
		return p.now >= p.until
	case p.timed:
		return p.now.Sub(p.first) >= p.after
	}
	return p.subject != nil && !p.list && concerned
}

// target is where to stop, for people.
func (p *player) target() string {
	switch {
	case p.timed && p.until != 0:
		return human.Clock(p.until)
	case p.timed:
		return human.Clock(p.first.Add(p.after))
	}
	return "anything in it concerns " + p.subject.String()
}

// sayHowFar says now and then how far a long replay is.
func (p *player) sayHowFar() {
	if p.events%1000 == 0 && time.Since(p.said) > interval {
		p.said = time.Now()
		fmt.Fprintf(p.app.err, "%d events, up to %s\n", p.events, human.Clock(p.now))
	}
}

// otherVersion says of a fault that the recording was made by another version, if it was.
func (p *player) otherVersion(err error, program string) error {
	if err == nil || program == "" || program == p.app.program.Version {
		return err
	}
	e := drover.AsError(err, drover.KindInvalid)
	if e.Hint == "" {
		e = e.WithHint("it was recorded by drover %s, and this is %s: use that one", program, p.app.program.Version)
	}
	return e
}

// report says how the replay went, and is the exit code of one that did not go the same way.
func (p *player) report() error {
	if p.moment != nil && !p.list {
		return p.app.showMoment(p.moment)
	}
	if !p.list {
		if err := printList(p.app, segmentsListing, each(p.segments)); err != nil {
			return err
		}
	}
	took := time.Since(p.began).Seconds()
	last := p.segments[len(p.segments)-1]
	if last.Differs == nil {
		fmt.Fprintf(p.app.err, "%s decided the same, %.0f a second\n", human.Plural(p.events, "event"), float64(p.events)/took)
		return nil
	}
	return p.app.showDifference(last)
}

// segmentsListing is how the segments of a recording are printed.
var segmentsListing = listing[playedSegment]{
	name: func(s playedSegment) string { return s.Segment },
	columns: []column[playedSegment]{
		{title: "SEGMENT", text: func(s playedSegment) string { return relative(s.Segment) }},
		{title: "BEGAN", text: func(s playedSegment) string { return thenOrNever(s.Began) }},
		{title: "ENDED", text: func(s playedSegment) string { return thenOrNever(s.Ended) }},
		{title: "EVENTS", text: func(s playedSegment) string { return fmt.Sprint(s.Events) }, right: true},
		{title: "DECIDED", text: func(s playedSegment) string {
			switch {
			case s.Differs != nil:
				return "otherwise"
			case s.Cut:
				return "the same, until it is cut short"
			}
			return "the same"
		}},
		{title: "BY", text: func(s playedSegment) string { return s.Program }, wide: true},
		{title: "CONFIGURATION", text: func(s playedSegment) string { return s.Settings[:min(12, len(s.Settings))] }, wide: true},
	},
}

func thenOrNever(t drover.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Local().Format(time.DateTime)
}
