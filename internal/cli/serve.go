package cli

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
)

// serveFlags are the flags of `drover serve`.
type serveFlags struct {
	drain   bool
	trust   bool
	verbose bool
	logs    string
	status  time.Duration // how often the status line is printed
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := unformatted("its log is on standard error, in the format of --log", &cobra.Command{
		Use:   "serve -c drover.yaml",
		Short: "Run the controller: a job queue for several users, with an API",
		Long: `Run the controller: a job queue with an API, on the clouds of the configuration. It takes over the
jobs and instances of an earlier controller with the same state, however that one exited.

On SIGTERM or Ctrl-C, it exits and leaves jobs and instances to the next controller. With --drain, it
first finishes the running jobs and destroys the instances; a second signal makes it exit immediately.
SIGHUP or editing the file reloads the configuration; an invalid file changes nothing.`,
		Example: `  drover serve -c drover.yaml
  drover serve -c drover.yaml --drain     # leaves nothing behind when it exits`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	})
	cmd.Flags().BoolVar(&f.drain, "drain", false, "on SIGTERM, first finish the running jobs and destroy the instances")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log everything")
	cmd.Flags().StringVar(&f.logs, "log", "", "log `format`, text or json; default: text on a terminal, json elsewhere")
	cmd.Flags().DurationVar(&f.status, "status-interval", time.Minute, "how often to log the fleet's status while jobs are running or waiting; 0: never")
	trustFlag(cmd, &f.trust)
	complete(cmd, "log", completeWords("text", "json"))
	return cmd
}

// trustFlag lets an expert start at once with records that may be an older copy.
func trustFlag(cmd *cobra.Command, trust *bool) {
	cmd.Flags().BoolVar(trust, "trust-records", false, "trust records that may be an older copy, without first checking what is running")
}

// logger returns the daemon's logger, on standard error.
func (a *app) logger(f serveFlags) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.verbose {
		o.Level = slog.LevelDebug
	}
	switch cmp.Or(f.logs, a.logFormat()) {
	case "text":
		return slog.New(slog.NewTextHandler(a.err, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, o)), nil
	}
	return nil, drover.Errorf(drover.KindInvalid, "--log %s is not valid", f.logs).WithHint("use --log text or --log json")
}

// logFormat is the default log format: text for people, JSON for log collectors.
func (a *app) logFormat() string {
	if a.terminal {
		return "text"
	}
	return "json"
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	if a.config == "" {
		return drover.Errorf(drover.KindInvalid, "a controller needs a configuration").WithHint("drover serve -c drover.yaml; drover config example shows one")
	}
	log, err := a.logger(f)
	if err != nil {
		return err
	}
	return daemon.Serve(ctx, daemon.Options{
		Program: a.program, File: a.config, Load: func() (*config.Config, error) { return a.loadConfig(a.config, "") },
		Drain: f.drain, Trust: f.trust, Status: f.status, Log: log, Simulator: a.newSimulator,
	})
}
