package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/backoff"
	"drover/internal/human"
)

// eventsFlags are the flags of `drover events`.
type eventsFlags struct {
	recent   bool
	job      string
	instance string
	level    string
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show events as they happen",
		Long: `Show events, one per line: the recent ones, then new ones until Ctrl-C. With -o json, each line is
an object. If the controller goes away, drover events waits until it is back.`,
		Example: "  drover events\n  drover events --recent --level warn\n  drover events --job 17 -o json",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			return a.events(ctx, svc, f)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.recent, "recent", false, "show the recent events and exit")
	flags.StringVar(&f.job, "job", "", "only events about this `JOB`, or the elements of this array")
	flags.StringVar(&f.instance, "instance", "", "only events about the instance with this `name`")
	flags.StringVar(&f.level, "level", "info", "lowest `level` to show: debug, info or warn")
	a.addPatience(cmd)
	complete(cmd, "job", a.completeJobs())
	complete(cmd, "instance", a.completeInstances)
	complete(cmd, "level", completeWords(levels...))
	return cmd
}

var levels = []string{"debug", "info", "warn"}

func (f eventsFlags) filter() (filter drover.EventFilter, err error) {
	if !slices.Contains(levels, f.level) {
		return filter, drover.Errorf(drover.KindInvalid, "--level %s is not valid", f.level).WithHint("use debug, info or warn")
	}
	filter = drover.EventFilter{Instance: f.instance, Level: f.level, Recent: f.recent}
	if f.job != "" {
		ids, err := jobIDs([]string{f.job})
		if err != nil {
			return filter, err
		}
		filter.Job = ids[0]
	}
	return filter, nil
}

// events shows events, and continues at the same place after the connection breaks.
func (a *app) events(ctx context.Context, svc drover.Watch, f eventsFlags) error {
	filter, err := f.filter()
	if err != nil {
		return err
	}
	for {
		err := a.patiently(ctx, func() error {
			for event, err := range svc.Events(ctx, filter) {
				if err != nil {
					return err
				}
				if err := a.showEvent(event); err != nil {
					return err
				}
				filter.After = cmp.Or(event.ID, filter.After) // a notice of missed events has no id
			}
			return nil
		})
		if err != nil || f.recent {
			return err
		}
		if err := backoff.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (a *app) showEvent(e drover.Event) error {
	if a.forPrograms() {
		return a.printOneOf(e)
	}
	_, err := fmt.Fprintln(a.out, drover.Sanitize(eventLine(e)))
	return err
}

// eventLine formats an event for people: "14:02:11 job 17.3 failed: exit code 3".
func eventLine(e drover.Event) string {
	if e.Missed != 0 {
		return "… " + e.Text
	}
	line := human.Clock(e.Time) + "  "
	if e.Level != "" && e.Level != "info" {
		line += e.Level + ": "
	}
	line += e.Text
	if e.Reason != nil && e.Reason.Text != "" && !strings.Contains(e.Text, e.Reason.Text) {
		line += ": " + e.Reason.Text
	}
	var about []string
	if e.Job != nil && !strings.Contains(e.Text, e.Job.String()) {
		about = append(about, "job "+e.Job.String())
	}
	if e.Instance != "" && !strings.Contains(e.Text, e.Instance) {
		about = append(about, e.Instance)
	}
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	return line
}
