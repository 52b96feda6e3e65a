package runner

import (
	"errors"
	"os"
	"testing"

	"drover"
)

func TestOnlyAnAttemptThatNeverBeganHasNotRun(t *testing.T) {
	d := &daemon{}
	for _, c := range []struct {
		a    attempt
		want bool
	}{
		{attempt{}, true}, // it may be about to begin
		{attempt{running: true, exit: &drover.Exit{Cause: drover.CauseTimeout}}, true},
		{attempt{exit: &drover.Exit{}}, true}, // its supervisor died before it could report the start
		{attempt{exit: &drover.Exit{Code: 1}}, true},
		{attempt{exit: &drover.Exit{Cause: drover.CauseLost}}, false},
		{attempt{exit: &drover.Exit{Cause: drover.CauseNoStart}}, false},
	} {
		if got := d.hasRun(&c.a); got != c.want {
			t.Errorf("running %v, exit %+v: %v, want %v", c.a.running, c.a.exit, got, c.want)
		}
	}
}

func TestAnAttemptForgottenMeanwhileDoesNotSeemToHaveNoOutputs(t *testing.T) {
	t.Chdir(t.TempDir())
	id := drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}
	for range 500 {
		f := folder("attempt")
		if err := errors.Join(f.create(), f.allow(record{ID: id})); err != nil {
			t.Fatal(err)
		}
		asked, forgotten := make(chan bool), make(chan error)
		go func() {
			<-asked
			forgotten <- os.Rename(string(f), "forgotten")
		}()
		for first := true; ; first = false {
			root, _, err := f.outputs()
			if first {
				close(asked)
			}
			if err != nil {
				break
			}
			if root == nil {
				t.Fatal("its working folder seems to have been removed by the job")
			}
			root.Close()
		}
		if err := errors.Join(<-forgotten, os.RemoveAll("forgotten")); err != nil {
			t.Fatal(err)
		}
	}
}
