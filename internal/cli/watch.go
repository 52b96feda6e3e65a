package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"drover"
)

// watchFlag is --watch: show something repeatedly.
type watchFlag struct{ every time.Duration }

func (w *watchFlag) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.every, "watch", 0, "repeat at this interval")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
}

// takeInterval removes the interval of --watch 5s from the arguments, where it ends up since it is optional.
func (w *watchFlag) takeInterval(args []string) []string {
	if w.every == 0 || len(args) == 0 {
		return args
	}
	every, err := time.ParseDuration(args[0])
	if err != nil || every <= 0 {
		return args
	}
	w.every = every
	return args[1:]
}

// show shows something once or repeatedly: in place on a terminal, otherwise one after the other. An error in the first
// round, or an invalid token, ends it; other errors are printed.
func (w *watchFlag) show(ctx context.Context, a *app, title string, once func(*app) error) error {
	if w.every == 0 {
		return once(a)
	}
	if w.every < 0 {
		return drover.Errorf(drover.KindInvalid, "--watch is %v, but must not be negative", w.every).WithHint("use --watch=2s")
	}
	tick := time.NewTicker(max(w.every, 100*time.Millisecond))
	defer tick.Stop()
	for round := 0; ; round++ {
		err := a.frame(title, round, once)
		switch {
		case errors.Is(err, syscall.EPIPE), err != nil && round == 0, drover.KindOf(err) == drover.KindAuthentication:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(a.err, "drover: %s\n", drover.SanitizeLines(err.Error()))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// frame shows something once more. A terminal gets it in one write, so that nothing flickers.
func (a *app) frame(title string, round int, once func(*app) error) error {
	if !a.screen || a.forPrograms() {
		if round > 0 {
			fmt.Fprintln(a.out)
		}
		return once(a)
	}
	var picture bytes.Buffer
	fmt.Fprintf(&picture, "\x1b[H\x1b[2J%s  %s\n\n", title, time.Now().Format(time.TimeOnly))
	onto := *a
	onto.out, onto.err = &picture, &picture
	failed := once(&onto)
	if _, err := io.Copy(a.out, &picture); err != nil {
		return err
	}
	return failed
}
