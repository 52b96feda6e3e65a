package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/backoff"
	"drover/internal/human"
)

// addPatience adds the flag for how long to wait for a controller.
func addPatience(cmd *cobra.Command, patience *time.Duration) {
	cmd.Flags().DurationVar(patience, "retry-for", 5*time.Minute, "how long to wait for a controller that does not answer, for example during a restart")
}

// away reports whether an error means that the controller is temporarily unavailable, and the pause it asked for.
func away(err error) (pause time.Duration, is bool) {
	if err == nil {
		return 0, false
	}
	e := drover.AsError(err, drover.KindInternal)
	switch e.Kind {
	case drover.KindUnreachable, drover.KindTransient:
		return 0, true
	case drover.KindRateLimit:
		return time.Until(e.RetryAt.Std()), true
	}
	return 0, false
}

// firstPatience is how long to wait, unless the command line says otherwise, for a controller that has not answered
// this command before: it may never have been started.
const firstPatience = 10 * time.Second

// patiently repeats a call until the controller answers, since it may be restarting. It prints one line when it begins
// to wait.
func (a *app) patiently(ctx context.Context, patience time.Duration, ask func() error) error {
	began := time.Now()
	said := false
	if !a.answered.Load() && !a.patient {
		patience = min(patience, firstPatience)
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := ask()
		pause, is := away(err)
		if said && !is {
			fmt.Fprintln(a.err, "the controller is answering again")
		}
		if !is {
			a.answered.Store(true)
		}
		if !is || time.Since(began) > patience {
			return err
		}
		switch kind := drover.KindOf(err); {
		case said || kind == drover.KindRateLimit:
		case kind == drover.KindTransient:
			said = true
			fmt.Fprintf(a.err, "the controller cannot do this now: %s; retrying for up to %s\n", drover.Sanitize(err.Error()), human.Age(patience))
		default:
			said = true
			fmt.Fprintf(a.err, "the controller is not answering; waiting up to %s for it\n", human.Age(patience))
		}
		if err := backoff.For(ctx, max(wait, min(pause, time.Minute))); err != nil {
			return err
		}
	}
}
