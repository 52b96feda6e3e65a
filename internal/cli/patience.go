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
func (a *app) addPatience(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&a.patience, "retry-for", 5*time.Minute, "how long to wait for a controller that does not answer, for example during a restart")
}

// away reports whether an error means that the controller is temporarily unavailable.
func away(err error) bool {
	kind := drover.KindOf(err)
	return kind == drover.KindUnreachable || kind == drover.KindTransient || kind == drover.KindRateLimit
}

// firstPatience is how long to wait, unless the command line says otherwise, for a controller that has not answered
// this command before: it may never have been started.
const firstPatience = 10 * time.Second

// longestPause limits the pause that a controller may request without the command losing patience.
const longestPause = time.Minute

// patiently repeats a call until the controller answers, since it may be restarting. A call that the rate limit refused
// had no effect, and is repeated when the controller allows.
func (a *app) patiently(ctx context.Context, ask func() error) error {
	began := time.Now()
	patience := a.patience
	if !a.answered.Load() && !a.patient {
		patience = min(patience, firstPatience)
	}
	for wait := 100 * time.Millisecond; ; {
		err := ask()
		if !away(err) {
			a.answers()
			return err
		}
		pause := wait
		e := drover.AsError(err, drover.KindInternal)
		switch allowed := time.Until(e.RetryAt.Std()); {
		case e.Kind == drover.KindRateLimit && e.RetryAt != 0 && allowed <= longestPause:
			pause = max(allowed, time.Millisecond)
		case time.Since(began) >= patience:
			return err
		default:
			wait = min(2*wait, 2*time.Second)
			a.tellAway(e, patience)
		}
		if err := backoff.For(ctx, pause); err != nil {
			return err
		}
	}
}

// answers records that the controller answers, and says so if the user was told otherwise.
func (a *app) answers() {
	a.answered.Store(true)
	if a.toldAway.CompareAndSwap(true, false) {
		fmt.Fprintln(a.err, "the controller is answering again")
	}
}

// tellAway tells the user, once, that the command waits for the controller.
func (a *app) tellAway(e *drover.Error, patience time.Duration) {
	switch {
	case e.Kind == drover.KindRateLimit || !a.toldAway.CompareAndSwap(false, true):
	case e.Kind == drover.KindTransient:
		fmt.Fprintf(a.err, "the controller cannot do this now: %s; retrying for up to %s\n", drover.Sanitize(e.Message), human.Age(patience))
	default:
		fmt.Fprintf(a.err, "the controller is not answering; waiting up to %s for it\n", human.Age(patience))
	}
}
