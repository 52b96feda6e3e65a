package cli

import (
	"context"
	"os"
	"syscall"
	"testing"

	"drover/internal/config"
	"drover/internal/control"
)

func TestWithClouds(t *testing.T) {
	t.Run("Ctrl-C counts even if what was going on has succeeded", func(t *testing.T) {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		err := (&app{}).withClouds(t.Context(), &config.Config{}, func(ctx context.Context, _ []control.Cloud) error {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		if err != exit(exitInterrupted) {
			t.Errorf("it ends with %v", err)
		}
	})
}
