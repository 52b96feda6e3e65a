package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"drover/driver/local"
	"drover/internal/config"
)

func TestAReloadIsNotLostWhileTheControllerStarts(t *testing.T) {
	const text = "version: 1\nfleet: early\nstate: sqlite:drover.db\nlisten: 127.0.0.1:0\nclouds: {here: {driver: local}}\n"
	send := func(s syscall.Signal) error { return syscall.Kill(os.Getpid(), s) }
	for name, early := range map[string]func(file string) error{
		"SIGHUP":  func(string) error { return send(syscall.SIGHUP) },
		"an edit": func(file string) error { return os.WriteFile(file, []byte(text+"# edited\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "drover.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			loads := make(chan int, 10)
			n := 0
			load := func() (*config.Config, error) {
				c, err := config.Load(file)
				if n++; n == 2 { // the last time before it serves
					err = errors.Join(err, early(file))
				}
				loads <- n
				return c, err
			}
			ended := make(chan error, 1)
			go func() {
				ended <- Serve(t.Context(), Options{
					Program: Program{Drivers: map[string]Kind{"local": {Open: local.Open, Keys: local.Config{}}}},
					File:    file, Load: load, Log: slog.New(slog.DiscardHandler),
				})
			}()
			deadline := time.After(time.Minute)
			for last := 0; last < 3; {
				select {
				case last = <-loads:
				case err := <-ended:
					t.Fatal(err)
				case <-deadline:
					t.Fatalf("the configuration was read %d times", last)
				}
			}
			if err := errors.Join(send(syscall.SIGTERM), <-ended); err != nil {
				t.Error(err)
			}
		})
	}
}
