package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
	"drover/internal/replay"
)

// replayFlags are the flags of `drover replay`.
type replayFlags struct {
	until  string
	about  string
	events bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := named(&cobra.Command{
		Use:   "replay [RECORDING…]",
		Short: "Replay a recording and check that each decision is the same",
		Long: `Replay a controller's decisions from its recording, and check that each is the same; if one
differs, show it. A RECORDING is a segment, a folder of segments, or the ID of a run; by default,
the recording of the controller that -c configures.

With --until, stop at a time and show what the controller knew; with --about, stop at the first
event about a job, an attempt or an instance; with both, stop at the time and explain the subject.
With --events, list the events and the decisions; with --events and --about, only those about the
subject.

The version that made a recording always makes the same decisions; another version may not.`,
		Example: `  drover replay run-x7k2pq
  drover replay -c drover.yaml --until 2026-03-01T14:02:00Z --about 17.3
  drover replay --events --about here-n-5 recording/00000012.jsonl.gz
  drover replay --until 90s -o json run-x7k2pq | jq .state.instances`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), f, args) },
	})
	flags := cmd.Flags()
	flags.StringVar(&f.until, "until", "", "stop at this `time`, such as 2026-03-01T14:02:00Z, or this long after the start, such as 90s")
	flags.StringVar(&f.about, "about", "", "stop at the first event about this `subject`: a job, an attempt or an instance")
	flags.BoolVar(&f.events, "events", false, "list the events, one per line, with the decisions")
	cmd.ValidArgsFunction = completeRecordings
	return cmd
}

// replay replays recordings and prints the result.
func (a *app) replay(ctx context.Context, f replayFlags, args []string) error {
	r, err := a.newReplay(f)
	if err != nil {
		return err
	}
	paths, err := a.recordings(args)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, path := range paths {
		if err := r.Play(ctx, path); err != nil {
			return fmt.Errorf("replaying %s: %w", relative(path), a.otherVersion(err, r.Segments))
		}
		if r.Stopped {
			return a.showReplay(r, time.Since(began))
		}
	}
	if r.Target != (replay.Target{}) && !f.events {
		return drover.Errorf(drover.KindNotFound, "the recording ends at %s, before %s", human.Clock(r.Now), targetWords(r)).
			WithHint("drover replay --events lists its events")
	}
	return a.showReplay(r, time.Since(began))
}

// newReplay creates a replay that stops where the flags say.
func (a *app) newReplay(f replayFlags) (r *replay.Replay, err error) {
	r = &replay.Replay{}
	r.Progress = a.replayProgress(r)
	if f.until != "" {
		if r.Target.Until, r.Target.After, err = parseUntil(f.until); err != nil {
			return nil, err
		}
		r.Target.Timed = true
	}
	if f.about != "" {
		subject, err := replay.ParseSubject(f.about)
		if err != nil {
			return nil, err
		}
		r.Target.Subject = &subject
	}
	if !f.events {
		return r, nil
	}
	if !slices.Contains([]output{outputTable, outputJSON, outputYAML}, a.output) {
		return nil, drover.Errorf(drover.KindInvalid, "--events prints lines, json or yaml, not %s", string(a.output)).WithHint("use -o json or -o yaml, or leave out -o")
	}
	r.Step = a.showStep
	return r, nil
}

// replayProgress occasionally prints how far a long replay has got.
func (a *app) replayProgress(r *replay.Replay) func() {
	said := time.Now()
	return func() {
		if r.Events%1000 == 0 && time.Since(said) > interval {
			said = time.Now()
			fmt.Fprintf(a.err, "%d events, up to %s\n", r.Events, human.Clock(r.Now))
		}
	}
}

// targetWords describes where a replay should stop.
func targetWords(r *replay.Replay) string {
	switch t := r.Target; {
	case t.Timed && t.Until != 0:
		return human.Clock(t.Until)
	case t.Timed:
		return human.Clock(r.First.Add(t.After))
	default:
		return "any event about " + t.Subject.String()
	}
}

// otherVersion adds a hint to an error if another version recorded the last segment.
func (a *app) otherVersion(err error, played []replay.Segment) error {
	if len(played) == 0 {
		return err
	}
	program := played[len(played)-1].Program
	if program == "" || program == a.program.Version {
		return err
	}
	e := drover.AsError(err, drover.KindInvalid)
	if e.Hint == "" {
		e = e.WithHint("it was recorded by drover %[1]s, but this is drover %[2]s: use drover %[1]s", program, a.program.Version)
	}
	return e
}

// showReplay prints how a replay went, and returns the exit code of one that differs.
func (a *app) showReplay(r *replay.Replay, took time.Duration) error {
	listed := r.Step != nil
	if r.Moment != nil && !listed {
		return a.showMoment(r.Moment)
	}
	if !listed {
		if err := printList(a, segmentsListing, each(r.Segments)); err != nil {
			return err
		}
	}
	last := r.Segments[len(r.Segments)-1]
	if last.Differs == nil {
		fmt.Fprintf(a.err, "the same decisions for %s (%.0f events per second)\n", human.Plural(r.Events, "event"), float64(r.Events)/took.Seconds())
		return nil
	}
	return a.showDifference(last)
}

// segmentsListing prints the segments of a recording.
var segmentsListing = listing[replay.Segment]{
	name: func(s replay.Segment) string { return s.Path },
	columns: []column[replay.Segment]{
		{title: "SEGMENT", text: func(s replay.Segment) string { return relative(s.Path) }},
		{title: "BEGAN", text: func(s replay.Segment) string { return thenOrNever(s.Began) }},
		{title: "ENDED", text: func(s replay.Segment) string { return thenOrNever(s.Ended) }},
		{title: "EVENTS", text: func(s replay.Segment) string { return fmt.Sprint(s.Events) }, right: true},
		{title: "DECIDED", text: func(s replay.Segment) string {
			switch {
			case s.Differs != nil:
				return "differently"
			case s.Cut:
				return "the same, but the recording is cut short"
			}
			return "the same"
		}},
		{title: "BY", text: func(s replay.Segment) string { return s.Program }, wide: true},
		{title: "CONFIGURATION", text: func(s replay.Segment) string { return s.Settings[:min(12, len(s.Settings))] }, wide: true},
	},
}

func thenOrNever(t drover.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Local().Format(time.DateTime)
}

// parseUntil parses a time, or a duration after the start.
func parseUntil(text string) (at drover.Time, after time.Duration, err error) {
	if after, err = time.ParseDuration(text); err == nil && after >= 0 {
		return 0, after, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return drover.TimeOf(t), 0, nil
		}
	}
	return 0, 0, drover.Errorf(drover.KindInvalid, "--until %s is not a time", text).
		WithHint("use --until 2026-03-01T14:02:00Z, --until '2026-03-01 14:02:00', or --until 90s for 90 seconds after the start")
}
