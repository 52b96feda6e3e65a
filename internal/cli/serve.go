package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/httpapi"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/store"
	"drover/internal/telemetry"
)

// serveFlags are the flags of `drover serve`.
type serveFlags struct {
	drain   bool
	trust   bool
	verbose bool
	logs    string
	status  time.Duration // how often the status line comes
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve -c drover.yaml",
		Short: "Run the controller: a queue that many people feed, over HTTP",
		Long: `Run the controller: a queue with an API, over every cloud of the configuration. It goes on with whatever an earlier controller of the same
state left, however that one ended.

SIGTERM or Ctrl-C ends it and leaves instances and jobs as they are; the next one goes on with them. With --drain it first lets what runs
finish and destroys the instances; a second signal ends it at once. SIGHUP, or editing the file, has it read its configuration again;
one that is not good is refused, and the last good one stays.`,
		Example: `  drover serve -c drover.yaml
  drover serve -c drover.yaml --drain     # for a last time`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.drain, "drain", false, "when told to end, finish what runs and destroy the instances first")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log everything")
	cmd.Flags().StringVar(&f.logs, "log", "", "log as `text` or json; left out: text on a terminal, json elsewhere")
	cmd.Flags().DurationVar(&f.status, "status-interval", time.Minute, "how often to log how the fleet does, while something runs or waits; 0: never")
	trustFlag(cmd, &f.trust)
	complete(cmd, "log", completeWords("text", "json"))
	return cmd
}

// trustFlag lets somebody who knows better begin at once with records that may be an older copy.
func trustFlag(cmd *cobra.Command, trust *bool) {
	cmd.Flags().BoolVar(trust, "trust-records", false, "go on at once with records that may be an older copy, without first seeing what runs")
}

// logger is the daemon's, on standard error.
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
	return nil, drover.Errorf(drover.KindInvalid, "--log %s is not known", f.logs).WithHint("write --log text or --log json")
}

// logFormat is how to log unless told otherwise: text for people, JSON for what gathers logs.
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
	c, folder, err := a.daemon()
	if err != nil {
		return err
	}
	if err := folder.make(); err != nil {
		return folder.orFull(err)
	}
	lock, err := store.LockFile(folder.db())
	if err != nil {
		return folder.orFull(err)
	}
	defer lock.Unlock()
	d := &daemon{app: a, flags: f, log: log, folder: folder, config: c, ended: make(chan error, 1)}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return folder.orFull(err)
	}
	return d.run(ctx)
}

// daemon is a controller with an API, while it runs.
type daemon struct {
	app    *app
	flags  serveFlags
	log    *slog.Logger
	folder daemonFolder
	config *config.Config // in use

	fleet    *fleet
	counted  *telemetry.Telemetry
	left     []config.Cloud    // that are open and no longer configured
	local    [sha256.Size]byte // of the local admin token
	owner    string            // who bears that
	listener net.Listener
	server   *http.Server
	api      *httpapi.Handler
	retired  []control.Cloud // drivers that were replaced
	ended    chan error      // what the controller's Run returned
}

func (d *daemon) open(ctx context.Context) (err error) {
	token, err := d.folder.makeToken()
	if err != nil {
		return err
	}
	d.local, d.owner = sha256.Sum256([]byte(token.Reveal())), owner()
	d.counted = d.app.program.telemetry()
	d.fleet, err = openFleet(ctx, fleetOptions{
		program: d.app.program,
		fleet:   d.config.Fleet, config: d.config, db: d.folder.db(), file: d.folder.file,
		results: d.folder.file("results"), kept: blob.DefaultLimits(), shared: true, trust: d.flags.trust, log: d.log, left: d.findLeft, counted: d.counted,
	})
	if err != nil {
		return err
	}
	d.counted.Ask(d.fleet.figures)
	if err := d.folder.keepClouds(d.config); err != nil {
		return err
	}
	d.listener, err = net.Listen("tcp", d.config.Listen)
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "listening on %s: %v", d.config.Listen, err).WithHint("listen: HOST:PORT in %s", d.app.config)
	}
	if cloud := control.Exposes(d.fleet.clouds); cloud != "" {
		d.log.Warn("the cloud runs jobs as this program's own user: they can do whatever it can, so only one user gets tokens", logkey.Cloud, cloud)
	}
	hosts := httpapi.Hosts(d.config.Listen, d.config.URL)
	if hosts == nil {
		d.log.Warn("listening for other hosts in the clear: put a proxy with TLS before this, and let nobody else reach it", logkey.Listen, d.config.Listen)
	}
	d.api = httpapi.New(httpapi.Config{
		Service: d.fleet.controller, Authenticate: d.authenticate, Log: d.log, Version: d.app.program.Version, Hosts: hosts,
		Ready: d.fleet.controller.Ready, Metrics: d.counted.Handler(), OpenMetrics: httpapi.Alone(d.config.Listen, d.config.URL), Shared: d.config.Auth.Shared,
	})
	d.server = httpapi.Server(d.api)
	return d.folder.announce(d.listener.Addr().String())
}

// findLeft finds the clouds that were taken out of the configuration while there still are instances in them. They drain.
func (d *daemon) findLeft(ctx context.Context, records *store.Store, c *config.Config) (_ []config.Cloud, err error) {
	if d.left, err = d.folder.cloudsLeft(ctx, records, c); err != nil {
		return nil, err
	}
	for _, cloud := range d.left {
		d.log.Warn("the cloud is no longer configured and has instances: they drain", logkey.Cloud, cloud.Name)
	}
	return d.left, nil
}

// owner is the name of whoever runs this.
func owner() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "local"
	}
	return u.Username
}

// authenticate says who bears a token: the owner of this host's, a person or program that was given one, or an attempt.
func (d *daemon) authenticate(ctx context.Context, token drover.Secret) (drover.Identity, error) {
	if sum := sha256.Sum256([]byte(token.Reveal())); subtle.ConstantTimeCompare(sum[:], d.local[:]) == 1 {
		return drover.Identity{User: d.owner, Role: drover.RoleAdmin}, nil
	}
	if remote.IsAttemptToken(token) {
		return d.fleet.attempt(ctx, token)
	}
	t, err := d.fleet.store.Token(ctx, drover.TimeOf(time.Now()), token)
	if err != nil {
		return drover.Identity{}, err
	}
	return drover.Identity{User: t.User, Role: t.Role}, nil
}

// close lets go of all that was opened.
func (d *daemon) close() {
	if d.listener != nil {
		d.listener.Close()
	}
	if d.fleet != nil {
		d.fleet.Close()
	}
	closeClouds(d.retired)
}

// run serves until it is told to end, or the controller cannot go on.
func (d *daemon) run(ctx context.Context) error {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { d.ended <- d.fleet.controller.Run(ctx) }()
	go d.fleet.serveAttempts(ctx, d.api)
	go d.serveHTTP()
	status := &statusLine{log: d.log, interval: d.flags.status, figures: d.fleet.figures}
	var telling sync.WaitGroup
	telling.Go(func() { status.Run(ctx) })
	d.log.Info("serving", logkey.Fleet, d.config.Fleet, logkey.URL, "http://"+d.listener.Addr().String(), logkey.TokenFile, d.folder.tokenFile())
	err := d.attend(ctx, signals)
	if err == nil {
		d.tellLeft(ctx)
	}
	d.shutDown()
	cancel()
	telling.Wait()
	if d.ended != nil {
		err = errors.Join(err, <-d.ended)
	}
	return err
}

func (d *daemon) serveHTTP() {
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
		d.log.Error("serving HTTP", logkey.Error, err)
	}
}

// lookInterval is how often it is looked whether the configuration was edited, and whether a controller that is to end has drained.
const lookInterval = time.Second

// attend waits for what the outside wants: a signal, an edited configuration, or the controller's own end.
func (d *daemon) attend(ctx context.Context, signals <-chan os.Signal) error {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	read, draining := d.stamp(), false
	last := read
	for {
		select {
		case err := <-d.ended:
			d.ended = nil
			e := drover.AsError(err, drover.KindInternal)
			return e.WithHint("%s; drover replay -c %s shows what led to it", cmp.Or(e.Hint, "nothing is lost: drover serve goes on from its records"), d.app.config)
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				read = d.stamp()
				d.reload(ctx)
			case d.flags.drain && !draining:
				draining = true
				d.log.Info("draining: what runs finishes, and instances go; once more ends at once", logkey.Signal, sig.String())
				d.fleet.controller.Drain(ctx)
			default:
				d.log.Info("ending", logkey.Signal, sig.String())
				return nil
			}
		case <-look.C:
			// A file that has just changed may still be being written.
			now := d.stamp()
			if now != read && now == last {
				read = now
				d.reload(ctx)
			}
			last = now
			if draining && d.drained(ctx) {
				return nil
			}
		}
	}
}

// stamp tells one version of the configuration file from the next.
func (d *daemon) stamp() string {
	info, err := os.Stat(d.app.config)
	if err != nil {
		return "" // an editor may be about to put it in place
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// shutDown lets requests that are under way finish, but for streams.
func (d *daemon) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.api.Close()
	if err := d.server.Shutdown(ctx); err != nil {
		d.log.Warn("some requests did not end", logkey.Error, err)
	}
}

// absolute is the path of the configuration as the log names it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
