package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/backoff"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/human"
)

// doctorFlags are the flags of `drover doctor`.
type doctorFlags struct {
	dump bool
	wait time.Duration
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration, the controller, the clouds and this host; or dump the controller's state",
		Long: `Check that the configuration is valid, that the clouds answer, that the controller is ready and
accepts the token, and that ssh is installed. The exit code is 1 if something is wrong.

With --dump, print everything that the controller knows, except secrets, as JSON for a bug report.`,
		Example: "  drover doctor -c drover.yaml\n  drover doctor --wait 30s\n  drover doctor --dump > dump.json",
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dump {
				return a.ask(a.dump)(cmd, args)
			}
			return untilSignal(func(ctx context.Context, _ []string) error { return a.doctor(ctx, f) })(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&f.dump, "dump", false, "print everything the controller knows")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait this long for the controller to answer")
	return cmd
}

func (a *app) dump(ctx context.Context, svc drover.Service, _ []string) error {
	return svc.Dump(ctx, a.out)
}

// finding is the result of one check.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// doctor makes all checks, even after a failure.
func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	c, wrong := a.checkedConfig(ctx, a.config)
	checks := []struct {
		name  string
		check func() (text string, err error)
	}{
		{"configuration", func() (string, error) { return a.checkConfiguration(c, wrong) }},
		{"clouds", func() (string, error) { return a.checkClouds(ctx, c, wrong) }},
		{"controller", func() (string, error) { return a.checkController(ctx, f.wait, wrong) }},
		{"ssh", checkSSH},
	}
	findings := []finding{}
	faults := 0
	for _, one := range checks {
		text, err := one.check()
		if _, ended := errors.AsType[exit](err); ended || ctx.Err() != nil {
			return exit(exitInterrupted)
		}
		if text == "" && err == nil {
			continue // nothing to check
		}
		found := finding{Check: one.name, OK: err == nil, Text: text}
		if err != nil {
			e := drover.AsError(err, drover.KindInternal)
			found.Text, found.Hint = e.Message, e.Hint
			faults++
		}
		findings = append(findings, found)
		if !a.forPrograms() {
			a.showFinding(found)
		}
	}
	if a.forPrograms() {
		if err := a.print(findings); err != nil {
			return err
		}
	}
	if faults > 0 {
		return exit(exitWorkFailed)
	}
	return nil
}

func (a *app) showFinding(f finding) {
	verdict, tint := "ok", green
	if !f.OK {
		verdict, tint = "fault", red
	}
	lines := strings.Split(drover.SanitizeLines(strings.TrimSpace(f.Text)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text := strings.Join(lines, "\n"+strings.Repeat(" ", 22))
	fmt.Fprintf(a.out, "%s  %-13s  %s\n", tinted(a.color, tint, fmt.Sprintf("%-5s", verdict)), f.Check, text)
	if f.Hint != "" {
		fmt.Fprintf(a.out, "       hint: %s\n", drover.Sanitize(f.Hint))
	}
}

func (a *app) checkConfiguration(c *config.Config, wrong error) (string, error) {
	switch {
	case wrong != nil:
		return "", wrong
	case a.config == "":
		return "no configuration specified, so this computer acts as the cloud", nil
	}
	return fmt.Sprintf("%s is valid: %s", a.config, human.Plural(len(c.Clouds), "cloud")), nil
}

// checkedConfig returns a configuration, if it passes drover config check.
func (a *app) checkedConfig(ctx context.Context, file string) (*config.Config, error) {
	c, err := a.loadConfig(file, "")
	if err != nil {
		return nil, err
	}
	return c, a.checkKeys(ctx, c)
}

func (a *app) checkClouds(ctx context.Context, c *config.Config, wrong error) (string, error) {
	if wrong != nil {
		return "", nil // reported with the configuration
	}
	count := 0
	err := a.withClouds(ctx, c, func(ctx context.Context, clouds []control.Cloud) error {
		offerings, _, err := daemon.Offerings(ctx, clouds)
		if err != nil {
			return err
		}
		if count = len(offerings); count == 0 {
			return drover.Errorf(drover.KindUnsupported, "the configured clouds offer no instance type that the configuration allows").
				WithHint("drover offers --all shows every type, and why it is excluded")
		}
		return canList(ctx, clouds)
	})
	return fmt.Sprintf("%s: %s", strings.Join(c.CloudNames(), ", "), human.Plural(count, "offering")), err
}

// canList checks that instances can be listed in each cloud, without which a controller learns nothing of them.
func canList(ctx context.Context, clouds []control.Cloud) (failed error) {
	for _, c := range clouds {
		if _, err := middleware.WithRetry(c.Driver).List(ctx, map[string]string{driver.TagFleet: askingFleet}); err != nil {
			failed = errors.Join(failed, fmt.Errorf("the instances of cloud %s cannot be listed: %w", c.Name, err))
		}
	}
	return failed
}

// checkController gets the controller's status, within a time limit.
func (a *app) checkController(ctx context.Context, patience time.Duration, wrong error) (string, error) {
	var status drover.Status
	began := time.Now()
	for {
		var err error
		if status, err = a.healthyStatus(ctx); err == nil {
			break
		}
		if wrong != nil && err.Error() == wrong.Error() {
			return "", nil // reported with the configuration
		}
		if !away(err) || time.Since(began) >= patience {
			return "", err
		}
		if err := backoff.For(ctx, 50*time.Millisecond); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("fleet %s, version %s", status.Fleet, status.Version)
	if own := a.program.Version; status.Version != "" && status.Version != own {
		text += "; this program is version " + own
	}
	if why := status.Paused; why != nil {
		text += "; " + why.Text
	}
	if status.Refused != "" {
		return "", drover.Errorf(drover.KindInvalid, "the controller is using an earlier configuration because the current file is invalid: %s", status.Refused).
			WithHint("correct the file; drover config check shows the errors that do not depend on the running controller")
	}
	if n := len(status.SetAside); n > 0 {
		return "", drover.Errorf(drover.KindConflict, "%s could not be read, and the affected jobs are held: %s", human.Plural(n, "record"), strings.Join(status.SetAside, "; ")).
			WithHint("check whether the attempt is still running; then run drover priority JOB 1 or drover cancel JOB")
	}
	return text, nil
}

// checkReady checks at /readyz whether a controller is ready to serve. It reports no fault if that path is not found,
// since a proxy may not forward it.
func checkReady(ctx context.Context, svc drover.Service) error {
	asked, ok := svc.(interface{ Ready(context.Context) error })
	if !ok {
		return nil
	}
	err := asked.Ready(ctx)
	switch {
	case drover.KindOf(err) == drover.KindNotFound:
		return nil
	case err != nil:
		return drover.Errorf(drover.KindOf(err), "the controller answers, but /readyz reports: %v", err).
			WithHint("it is shutting down, overloaded or unable to write its records: check its log and its disk")
	}
	return nil
}

// healthyStatus finds the controller and returns its status, if it can serve.
func (a *app) healthyStatus(ctx context.Context) (status drover.Status, err error) {
	svc, err := a.connect(ctx)
	if err != nil {
		return status, err
	}
	notReady := checkReady(ctx, svc)
	if status, err = svc.Status(ctx); err != nil {
		return status, err
	}
	if why := status.Suspended; why != nil {
		return status, drover.Errorf(drover.KindTransient, "the controller answers but cannot change anything: %s", why.Text).
			WithHint("free up space on the disk with the records; the controller then resumes automatically")
	}
	return status, notReady
}

func checkSSH() (string, error) {
	path, err := exec.LookPath("ssh")
	if errors.Is(err, exec.ErrNotFound) {
		return "", drover.Errorf(drover.KindInvalid, "ssh, which drover ssh needs, is not installed").WithHint("install the OpenSSH client")
	}
	return path, err
}
