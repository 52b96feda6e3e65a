package daemon

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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"drover"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/httpapi"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/store"
	"drover/internal/telemetry"
	"drover/internal/web"
)

// Options configure a daemon.
type Options struct {
	Program Program
	File    string                         // of the configuration; it is read again when it changes
	Load    func() (*config.Config, error) // reads it
	Drain   bool                           // on SIGTERM, first finish the running jobs and destroy the instances
	Trust   bool                           // accept records that may be an older copy
	Status  time.Duration                  // the interval of the status line; 0: never
	Log     *slog.Logger

	// Simulator tries configurations for the dashboard, compared with the one in use, with what the clouds in use
	// offer; nil: none.
	Simulator func(inUse func() *config.Config, clouds func() []control.Cloud) web.Simulator
}

// Serve runs a controller with an API, until it is told to end.
func Serve(ctx context.Context, o Options) error {
	d := &daemon{Options: o, ended: make(chan error, 1), hangups: make(chan os.Signal, 1)}
	signal.Notify(d.hangups, syscall.SIGHUP)
	defer signal.Stop(d.hangups)
	d.loaded = d.stamp()
	c, err := o.Load()
	if err != nil {
		return err
	}
	folder, err := NewFolder(c)
	if err != nil {
		return asHost(err)
	}
	if err := folder.Make(); err != nil {
		return folder.orFull(err)
	}
	lock, err := store.LockFile(folder.DB())
	if err != nil {
		return folder.orFull(err)
	}
	defer lock.Unlock()
	d.folder, d.config = folder, c
	defer d.close()
	if d.config, err = d.load(ctx); err != nil {
		return folder.orFull(err)
	}
	if err := d.open(ctx); err != nil {
		return folder.orFull(err)
	}
	return d.run(ctx)
}

// daemon is a running controller with an API.
type daemon struct {
	Options
	folder Folder
	config *config.Config                // in use
	inUse  atomic.Pointer[config.Config] // the same, for goroutines other than attend's

	hangups chan os.Signal // requests to reload, also those that came before attend
	loaded  string         // the stamp of the file that was last read

	traced     func(context.Context) error // sends the remaining traces
	fleet      *Fleet
	counted    *telemetry.Telemetry
	left       []config.Cloud    // open, but no longer configured
	local      [sha256.Size]byte // of the local admin token
	owner      string            // who bears that token
	listener   net.Listener
	server     *http.Server
	api        *httpapi.Handler
	pages      *web.Handler
	cluster    *kubernetes     // nil: none is configured
	retired    []control.Cloud // drivers that were replaced
	described  string          // the last description of a pool in an attribute, used or refused
	describe   time.Time       // when the attribute is read again
	untold     bool            // it is already logged that the attribute cannot be read
	reschedule time.Time       // when a pool's schedule next changes the settings; zero: never
	ended      chan error      // what the controller's Run returned
}

func (d *daemon) open(ctx context.Context) (err error) {
	token, err := d.folder.MakeToken()
	if err != nil {
		return err
	}
	d.local, d.owner = sha256.Sum256([]byte(token.Reveal())), Owner()
	v := d.Program.Build()
	d.counted = telemetry.New(telemetry.Build{Version: v.Version, Revision: v.Commit, Go: v.Go})
	if d.traced, err = d.counted.Trace(ctx, d.config.Fleet, d.Log); err != nil {
		return err
	}
	d.inUse.Store(d.config)
	d.fleet, err = OpenFleet(ctx, FleetOptions{
		Program: d.Program,
		Fleet:   d.config.Fleet, Config: d.config, DB: d.folder.DB(), File: d.folder.File,
		Results: d.folder.File("results"), Kept: blob.DefaultLimits(), shared: true, Trust: d.Trust, Log: d.Log, Left: d.findLeft, counted: d.counted,
	})
	if err != nil {
		return err
	}
	d.counted.Ask(d.fleet.figures)
	_, d.reschedule = d.config.At(time.Now())
	if d.listener, err = d.listen(apiAddress, d.config.Listen); err != nil {
		return err
	}
	if cloud := control.Exposes(d.fleet.clouds); cloud != "" {
		d.Log.Warn("jobs in this cloud run as the controller's own user and can do whatever the controller can, so only one user may have tokens", logkey.Cloud, cloud)
	}
	key, err := sessionKey(token)
	if err != nil {
		return err
	}
	d.api, d.pages = WithDashboard(d.dashboard(key), httpapi.Config{
		Service: d.fleet.Controller, Authenticate: d.authenticate, Log: d.Log, Version: d.Program.Version, Notice: d.notice,
		Ready: d.fleet.Controller.Ready, Metrics: d.counted.Handler(), Compare: d.compare, Reach: d.reach(d.config), Shared: d.config.Auth.Shared,
	})
	d.server = httpapi.Server(d.api)
	if d.cluster, err = d.openKubernetes(); err != nil {
		return err
	}
	return d.folder.Announce(d.listener.Addr().String())
}

func (d *daemon) dashboard(key [32]byte) web.Config {
	b := web.Config{Fleet: d.config.Fleet, Key: key, Secure: strings.HasPrefix(d.config.URL, "https://"), Shared: d.config.Auth.Shared}
	if d.Simulator != nil {
		b.Simulator = d.Simulator(d.inUse.Load, d.fleet.Controller.Clouds)
	}
	return b
}

// findLeft finds the clouds that were removed from the configuration while they still had instances. They drain.
func (d *daemon) findLeft(ctx context.Context, records *store.Store, c *config.Config) (_ []config.Cloud, err error) {
	if d.left, err = d.folder.cloudsLeft(ctx, records, c); err != nil {
		return nil, err
	}
	for _, cloud := range d.left {
		d.Log.Warn("the cloud is no longer configured but still has instances, which are draining", logkey.Cloud, cloud.Name)
	}
	return d.left, nil
}

// Owner returns the name of the user who runs this process.
func Owner() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "local"
	}
	return u.Username
}

// authenticate returns the identity of a token's bearer: this process's owner for the local token, a person or program
// with a token of their own, or an attempt.
func (d *daemon) authenticate(ctx context.Context, token drover.Secret) (drover.Identity, error) {
	if sum := sha256.Sum256([]byte(token.Reveal())); subtle.ConstantTimeCompare(sum[:], d.local[:]) == 1 {
		return drover.Identity{User: d.owner, Role: drover.RoleAdmin}, nil
	}
	if remote.IsAttemptToken(token) {
		return d.fleet.Attempt(ctx, token)
	}
	t, err := d.fleet.Store.Token(ctx, drover.TimeOf(time.Now()), token)
	if err != nil {
		return drover.Identity{}, err
	}
	return drover.Identity{User: t.User, Role: t.Role}, nil
}

// close closes everything that was opened.
func (d *daemon) close() {
	if d.listener != nil {
		d.listener.Close()
	}
	if d.cluster != nil {
		d.cluster.listener.Close()
	}
	if d.fleet != nil {
		d.fleet.Close()
	}
	CloseClouds(d.retired)
	if d.traced == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := d.traced(ctx); err != nil {
		d.Log.Warn("the last traces were not sent", logkey.Error, err)
	}
}

// run serves until it is told to end, or the controller cannot continue.
func (d *daemon) run(ctx context.Context) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { d.ended <- d.fleet.Controller.Run(ctx) }()
	go d.fleet.ServeAttempts(ctx, d.api)
	go d.serveHTTP(d.listener)
	status := &statusLine{log: d.Log, interval: d.Status, figures: d.fleet.figures}
	var telling sync.WaitGroup
	telling.Go(func() { status.Run(ctx) })
	if d.cluster != nil {
		telling.Go(func() { d.cluster.run(ctx, d) })
	}
	d.Log.Info("serving", logkey.Fleet, d.config.Fleet, logkey.URL, "http://"+d.listener.Addr().String(), logkey.TokenFile, d.folder.tokenFile())
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

// serveHTTP serves a listener until the listener is closed.
func (d *daemon) serveHTTP(l net.Listener) {
	if err := d.server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		d.Log.Error("the HTTP server has stopped", logkey.Error, err)
	}
}

// lookInterval is how often to check whether the configuration was edited, and whether an ending controller has
// drained.
const lookInterval = time.Second

// attend waits for a signal, an edited configuration, or the controller's end.
func (d *daemon) attend(ctx context.Context, signals <-chan os.Signal) error {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	last, draining := d.loaded, false
	for {
		select {
		case err := <-d.ended:
			d.ended = nil
			if err == nil { // ctx has ended
				return nil
			}
			e := drover.AsError(err, drover.KindInternal)
			return e.WithHint("%s; drover replay -c %s shows what led to this", cmp.Or(e.Hint, "nothing is lost: drover serve continues from its records"), d.File)
		case <-d.hangups:
			d.loaded = d.stamp()
			d.reload(ctx)
		case sig := <-signals:
			switch {
			case d.Drain && !draining:
				draining = true
				d.Log.Info("draining: running jobs finish, then instances are destroyed; a second signal makes the controller exit immediately", logkey.Signal, sig.String())
				d.fleet.Controller.Drain(ctx, "")
			default:
				d.Log.Info("shutting down", logkey.Signal, sig.String())
				return nil
			}
		case <-look.C:
			// A file that has just changed may still be being written.
			now := d.stamp()
			if now != d.loaded && now == last {
				d.loaded = now
				d.reload(ctx)
			}
			last = now
			d.followSchedules(ctx)
			d.followDescribed(ctx)
			if draining && d.drained(ctx) {
				return nil
			}
		}
	}
}

// stamp identifies a version of the configuration file.
func (d *daemon) stamp() string {
	info, err := os.Stat(d.File)
	if err != nil {
		return "" // an editor may be about to put it in place
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// shutDown lets requests under way finish, except streams.
func (d *daemon) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.api.Close()
	if err := d.server.Shutdown(ctx); err != nil {
		d.Log.Warn("some requests did not finish", logkey.Error, err)
	}
}

// absolute returns the configuration's path for the log.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
