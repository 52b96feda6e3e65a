package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/middleware"
	"drover/internal/backoff"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/gc"
	"drover/internal/human"
)

// driverTestFlags are the flags of `drover driver test`.
type driverTestFlags struct {
	yes      bool
	typ      string
	many     int
	patience time.Duration
	noLogin  bool
	only     string
}

func (a *app) driverCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "driver", Short: "Check a cloud's driver", Example: "  drover driver test aws -c drover.yaml"}
	cmd.AddCommand(a.driverTestCommand())
	return cmd
}

func (a *app) driverTestCommand() *cobra.Command {
	var f driverTestFlags
	cmd := &cobra.Command{
		Use:   "test CLOUD",
		Short: "Test a configured cloud by creating instances there",
		Long: `Test whether a configured cloud does everything Drover needs. The checks create, list, tag, log
in to and destroy instances in test fleets of their own; they touch nothing else. The maximum cost is
printed first, and you are asked to confirm. The exit code is 1 if a check failed.

Ctrl-C destroys what the test created; a second Ctrl-C exits immediately and prints how to clean up.`,
		Example: "  drover driver test here\n  drover driver test aws -c drover.yaml --type t4g.nano\n  drover driver test aws -c drover.yaml --many 120 --yes",
		Args:    wantArgs(1, 1, "the name of a cloud in the configuration"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.driverTest(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	flags.StringVar(&f.typ, "type", "", "create instances of this `type`; default: the cheapest")
	flags.IntVar(&f.many, "many", 0, "also create `N` instances at once, to test lists of several pages")
	flags.DurationVar(&f.patience, "wait", 5*time.Minute, "how long an instance may take to be listed, to accept a login or to disappear")
	flags.BoolVar(&f.noLogin, "no-login", false, "skip the checks that log in")
	flags.StringVar(&f.only, "only", "", "run only checks with this `text` in their names")
	cmd.ValidArgsFunction = a.completeClouds
	return cmd
}

// verdict is the result of one check.
type verdict struct {
	Check   string  `json:"check"`
	Verdict string  `json:"verdict"` // ok, failed or skipped
	Seconds float64 `json:"seconds"`
	Text    string  `json:"text,omitempty"`
}

// driverTest is one run of the test suite.
type driverTest struct {
	app    *app
	flags  driverTestFlags
	cloud  config.Cloud
	opened control.Cloud // the cloud as it was first opened; all later ones reach instances in the same way
	fleet  string
	folder string // where each fleet has its own folder
	checks []drivertest.Check
	found  []verdict
	left   bool // the test ends at once, with calls still in flight
}

func (a *app) driverTest(ctx context.Context, name string, f driverTestFlags) error {
	t, err := a.newDriverTest(name, f)
	if err != nil {
		return err
	}
	defer t.leaveFolders()
	h, err := t.harness(ctx)
	if err != nil {
		return err
	}
	if err := t.ask(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.run(ctx, h)
	}()
	interrupted := false
	for {
		select {
		case <-done:
			return t.verdict(interrupted)
		case sig := <-signals:
			if interrupted {
				return t.leave()
			}
			interrupted = true
			cancel()
			fmt.Fprintf(a.err, "%v: destroying what the test created; send a second signal to exit immediately\n", sig)
		}
	}
}

func (a *app) newDriverTest(name string, f driverTestFlags) (*driverTest, error) {
	switch {
	case f.many < 0:
		return nil, drover.Errorf(drover.KindInvalid, "--many is %d, but must not be negative", f.many)
	case f.patience <= 0:
		return nil, drover.Errorf(drover.KindInvalid, "--wait is %v, but must be positive", f.patience).WithHint("use --wait 5m")
	}
	c, err := a.loadConfig(a.config, name)
	if err != nil {
		return nil, err
	}
	home, err := daemon.StateHome()
	if err != nil {
		return nil, err
	}
	t := &driverTest{app: a, flags: f, cloud: c.Clouds[0], fleet: daemon.TestFleet + strings.ToLower(rand.Text()[:6]), folder: home}
	for _, check := range drivertest.Checks() {
		if strings.Contains(check.Name, f.only) {
			t.checks = append(t.checks, check)
		}
	}
	if len(t.checks) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "no check has %q in its name", f.only)
	}
	return t, nil
}

// harness opens the cloud once, to determine how to test it.
func (t *driverTest) harness(ctx context.Context) (h drivertest.Harness, err error) {
	if t.opened, err = t.open(ctx, t.fleet); err != nil {
		return h, err
	}
	defer t.opened.Driver.Close()
	all, _, err := daemon.Offerings(ctx, []control.Cloud{t.opened})
	if err != nil {
		return h, fmt.Errorf("fetching the offerings of %s: %w", t.cloud.Name, err)
	}
	fitting := slices.DeleteFunc(all, func(o drover.Offering) bool { return t.flags.typ != "" && o.Type.Name != t.flags.typ })
	if len(fitting) == 0 {
		return h, drover.Errorf(drover.KindInvalid, "%s has no usable offerings%s", t.cloud.Name, ofType(t.flags.typ)).
			WithHint("drover offers lists all offerings")
	}
	o := slices.MinFunc(fitting, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
	h = drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			c, err := t.open(ctx, fleet)
			if err != nil {
				return nil, err
			}
			return middleware.ForFleet(c.Driver, fleet), nil
		},
		Fleet: t.fleet, Patience: t.flags.patience, Many: t.flags.many, NoLogin: t.flags.noLogin, Reach: t.opened.Reach,
		Request: driver.CreateRequest{Disk: t.cloud.Disk, Candidates: []driver.Candidate{
			{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market, Arch: o.Type.Resources.Arch},
		}},
	}
	t.tell(h, o)
	return h, nil
}

func ofType(name string) string {
	if name == "" {
		return ""
	}
	return " of type " + name
}

func (t *driverTest) open(ctx context.Context, fleet string) (control.Cloud, error) {
	return daemon.OpenCloud(ctx, t.cloud, daemon.Opening{Drivers: t.app.program.Drivers, Fleet: fleet, Folder: filepath.Join(t.folder, fleet), Log: slog.New(slog.DiscardHandler)})
}

// count is how many verdicts there will be: one for each check, and one for leftovers.
func (t *driverTest) count() int { return len(t.checks) + 1 }

// tell prints what will be created and its maximum cost, if each instance takes as long as it may to appear and to
// disappear.
func (t *driverTest) tell(h drivertest.Harness, o drover.Offering) {
	total, most := 0, 0
	for _, c := range t.checks {
		total, most = total+c.Instances(h), max(most, c.Instances(h))
	}
	billing := t.opened.Driver.Capabilities().Billing
	billing.Period = cmp.Or(t.cloud.Prices.Period, billing.Period)
	paid := billing.PaidUntil(0, drover.Time(2*t.flags.patience))
	cost := o.Price.For(time.Duration(paid)) * drover.Money(total)
	fmt.Fprintf(t.app.err, "%s: %s, %s, up to %d at once; each %s in %s, %s, at %v an hour: at most %v\n", t.cloud.Name,
		human.Plural(t.count(), "check"), human.Plural(total, "instance"), most, drover.Sanitize(o.Type.Name), drover.Sanitize(o.Zone), o.Market, o.Price, cost)
}

// ask requires a confirmation, on a terminal.
func (t *driverTest) ask() error {
	switch {
	case t.flags.yes:
		return nil
	case !isTerminal(os.Stdin):
		return drover.Errorf(drover.KindInvalid, "cannot ask for confirmation without a terminal").WithHint("use --yes")
	}
	fmt.Fprint(t.app.err, "continue? [y/N] ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		fmt.Fprintln(t.app.err, "nothing was created")
		return exit(exitWorkFailed)
	}
	return nil
}

// run makes each check, and at the end cleans up.
func (t *driverTest) run(ctx context.Context, h drivertest.Harness) {
	for _, c := range t.checks {
		if ctx.Err() != nil {
			break
		}
		t.judge(c.Name, func() error { return c.Run(ctx, h) })
	}
	t.judge("nothing is left behind", func() error { return t.clean(context.WithoutCancel(ctx), ctx.Err() != nil) })
}

// judge makes one check and prints its verdict.
func (t *driverTest) judge(name string, check func() error) {
	began := time.Now()
	err := check()
	v := verdict{Check: name, Verdict: "ok", Seconds: time.Since(began).Seconds()}
	switch {
	case errors.Is(err, drivertest.ErrSkipped):
		v.Verdict, v.Text = "skipped", strings.TrimPrefix(err.Error(), drivertest.ErrSkipped.Error()+": ")
	case err != nil:
		v.Verdict, v.Text = "failed", err.Error()
	}
	t.found = append(t.found, v)
	if t.app.forPrograms() {
		return
	}
	tint := map[string]color{"ok": green, "failed": red}[v.Verdict]
	fmt.Fprintf(t.app.out, "%s  %s (%.1fs)\n", tinted(t.app.color, tint, fmt.Sprintf("%-7s", v.Verdict)), drover.Sanitize(name), v.Seconds)
	if v.Text != "" {
		fmt.Fprintf(t.app.out, "         %s\n", strings.ReplaceAll(drover.SanitizeLines(v.Text), "\n", "\n         "))
	}
}

// settle is how long, after an interruption, the test watches for instances of create calls that it gave up.
const settle = 5 * time.Second

// clean destroys every instance of the two fleets, and removes what the instances leave behind.
func (t *driverTest) clean(ctx context.Context, interrupted bool) error {
	return errors.Join(t.cleanFleet(ctx, t.fleets()[0], interrupted), t.cleanFleet(ctx, t.fleets()[1], false))
}

func (t *driverTest) fleets() []string { return []string{t.fleet, t.fleet + "-other"} }

func (t *driverTest) cleanFleet(ctx context.Context, fleet string, interrupted bool) error {
	c, err := t.open(ctx, fleet)
	if err != nil {
		return err
	}
	own := middleware.ForFleet(middleware.WithRetry(c.Driver), fleet)
	defer own.Close()
	for began := time.Now(); ; {
		left, err := gc.Strays(ctx, own, c, fleet)
		if err != nil {
			return err
		}
		if err := gc.DestroyStrays(ctx, own, fleet, left); err != nil {
			return err
		}
		if !interrupted || time.Since(began) > settle {
			break
		}
		if err := backoff.For(ctx, time.Second); err != nil {
			return err
		}
	}
	_, err = driver.Reap(ctx, own, fleet, drover.TimeOf(time.Now()), driver.Ended)
	return err
}

// verdict returns the command's result.
func (t *driverTest) verdict(interrupted bool) error {
	if t.app.forPrograms() {
		if err := t.app.print(t.found); err != nil {
			return err
		}
	}
	failed := 0
	for _, v := range t.found {
		failed += count(v.Verdict == "failed")
	}
	switch {
	case interrupted:
		return exit(exitInterrupted)
	case failed > 0:
		fmt.Fprintf(t.app.err, "%d of %s failed\n", failed, human.Plural(t.count(), "check"))
		return exit(exitWorkFailed)
	}
	fmt.Fprintf(t.app.err, "%s does everything that Drover needs\n", t.cloud.Name)
	return nil
}

// leave tells the user how to clean up.
func (t *driverTest) leave() error {
	t.left = true
	which := ""
	if t.app.config != "" {
		which = " -c " + t.app.config
	}
	fmt.Fprintln(t.app.err, "exited immediately; instances may still exist. To clean up:")
	for _, fleet := range t.fleets() {
		fmt.Fprintf(t.app.err, "    drover gc%s --fleet %s --destroy\n", which, fleet)
	}
	return exit(exitInterrupted)
}

// leaveFolders removes the drivers' folders, unless something that they describe is left.
func (t *driverTest) leaveFolders() {
	if t.left {
		return
	}
	if slices.ContainsFunc(t.found, func(v verdict) bool { return v.Check == "nothing is left behind" && v.Verdict == "ok" }) || len(t.found) == 0 {
		for _, fleet := range t.fleets() {
			os.RemoveAll(filepath.Join(t.folder, fleet))
		}
	}
}
