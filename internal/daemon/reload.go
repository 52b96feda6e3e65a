package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/human"
	"drover/internal/logkey"
)

// reload reads the configuration again. If it is invalid, or changes what only a restart can change, it is refused
// with the reason, and nothing changes.
func (d *daemon) reload(ctx context.Context) {
	c, err := d.load(ctx)
	if err == nil {
		err = d.needsStart(c)
	}
	d.note(err)
	if err == nil && c.Same(d.config) {
		d.Log.Info("the configuration is unchanged", logkey.File, absolute(d.File))
		return
	}
	if err == nil {
		err = d.take(ctx, c)
	}
	if err != nil {
		d.note(err)
		d.refuse(err)
		return
	}
	d.Log.Info("the configuration was reloaded", logkey.File, absolute(d.File), logkey.Hash, c.Hash()[:12])
}

// note records why the configuration's present file is not in use; nil: it is.
func (d *daemon) note(err error) {
	d.counted.Refused(err != nil)
	why := ""
	if err != nil {
		why = absolute(d.File) + ": " + onOneLine(err)
	}
	d.fleet.Controller.Refuse(why)
}

// onOneLine renders an error on one line, with hints in parentheses.
func onOneLine(err error) string {
	with := func(text, hint string) string {
		if hint == "" {
			return text
		}
		return text + " (" + hint + ")"
	}
	var faults config.Faults
	if !errors.As(err, &faults) {
		return with(err.Error(), drover.AsError(err, drover.KindInvalid).Hint)
	}
	var all []string
	for _, f := range faults {
		hint := f.Hint
		f.Hint = ""
		all = append(all, with(f.String(), hint))
	}
	return strings.Join(all, "; ")
}

// notice returns what anybody may know about a refused configuration.
func (d *daemon) notice() string {
	if d.fleet.Controller.Refused() == "" {
		return ""
	}
	return "the configuration file is invalid, so the last valid one stays in use: drover doctor says why"
}

// refuse logs what is wrong with a configuration, each error on its own line.
func (d *daemon) refuse(err error) {
	log := d.Log.With(logkey.File, absolute(d.File))
	const refused = "the configuration is invalid, so the last valid one stays in use"
	var faults config.Faults
	if !errors.As(err, &faults) {
		e := drover.AsError(err, drover.KindInvalid)
		log.Error(refused, attrs(logkey.Error, e.Message, logkey.Hint, e.Hint)...)
		return
	}
	for _, f := range faults {
		at := log
		if f.Line > 0 {
			at = log.With(logkey.Line, f.Line, logkey.Column, f.Column)
		}
		at.Error(refused, attrs(logkey.Error, f.Message, logkey.Hint, f.Hint)...)
	}
}

// attrs returns pairs for the log, without empty ones.
func attrs(pairs ...string) (said []any) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			said = append(said, pair[0], pair[1])
		}
	}
	return said
}

// needsStart refuses a change of keys that only a restart can change.
func (d *daemon) needsStart(c *config.Config) error {
	changed := fixed(d.config, c)
	if len(changed) == 0 {
		return nil
	}
	hint := "restart it: this interrupts no jobs"
	switch {
	case slices.Contains(changed, "fleet"):
		hint = fmt.Sprintf("write fleet: %s again, since the controller's jobs and instances belong to that fleet", d.config.Fleet)
	case slices.Contains(changed, "state"):
		hint = "stop the controller, move its records and the folder next to them, then start it again"
	case d.config.Kubernetes.Kubeconfig != "" && c.Kubernetes.Kubeconfig == "":
		hint = "keep the kubernetes key until drover instances lists no nodes, then restart the controller; without the key, nodes are destroyed with their pods"
	}
	return drover.Errorf(drover.KindInvalid, "%s cannot change while the controller is running", human.And(changed)).WithHint("%s", hint)
}

// fixed returns the keys that differ and that only a restart can change.
func fixed(from, to *config.Config) (changed []string) {
	for key, values := range map[string][2]string{
		"fleet": {from.Fleet, to.Fleet}, "state": {from.State, to.State},
		"auth": {fmt.Sprint(from.Auth), fmt.Sprint(to.Auth)}, "kubernetes": {fmt.Sprint(from.Kubernetes), fmt.Sprint(to.Kubernetes)},
	} {
		if values[0] != values[1] {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// take applies another configuration. Clouds that did not change keep their drivers. In a removed cloud nothing more is
// rented, and its instances drain; it stays open as long as this controller lives, since a call that creates an
// instance may be under way.
func (d *daemon) take(ctx context.Context, c *config.Config) error {
	clouds, left := d.kept(c)
	opening, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	opened, err := d.openChanged(opening, c)
	if err == nil {
		err = d.checkReopened(opening, c, opened)
	}
	if err == nil {
		err = checkDrivers(c, slices.Concat(clouds, opened))
	}
	if err == nil {
		err = checkBudget(opening, c, slices.Concat(clouds, opened), d.Log)
	}
	var listener net.Listener
	if err == nil {
		listener, err = d.listenAnew(c)
	}
	if err == nil {
		err = keepClouds(d.folder.Path(), c) // before it can rent anything, but after what may refuse it
	}
	if err == nil {
		err = d.goBy(ctx, c, left, slices.Concat(clouds, opened))
	}
	if err != nil {
		CloseClouds(opened)
		if listener != nil {
			listener.Close()
			err = errors.Join(err, d.listenBack())
		}
		return err
	}
	d.move(c, listener)
	for _, old := range d.fleet.clouds {
		if !slices.ContainsFunc(clouds, func(c control.Cloud) bool { return c.Name == old.Name }) {
			d.retired = append(d.retired, old) // calls that are under way finish on it
		}
	}
	d.fleet.clouds, d.left, d.config = slices.Concat(clouds, opened), left, c
	d.inUse.Store(c)
	d.fleet.recording.Configured(c.Hash())
	return nil
}

// goBy applies a configuration to the controller, as the schedules of its pools set it now. It notes when they next
// change it.
func (d *daemon) goBy(ctx context.Context, c *config.Config, left []config.Cloud, clouds []control.Cloud) error {
	now, next := c.At(time.Now())
	err := d.fleet.Controller.Reconfigure(ctx, setupOf(now, left, RunLimits{}, clouds))
	if err == nil {
		d.reschedule = next
	}
	return err
}

// followSchedules resizes pools when their schedules are due.
func (d *daemon) followSchedules(ctx context.Context) {
	if !d.rescheduled(time.Now()) {
		return
	}
	if err := d.goBy(ctx, d.config, d.left, d.fleet.clouds); err != nil {
		d.Log.Error("pools cannot be resized on schedule", logkey.Error, err)
	}
}

// rescheduled reports whether the schedules have changed the settings, or the clock has been set to another period.
func (d *daemon) rescheduled(now time.Time) bool {
	_, next := d.config.At(now)
	return !next.Equal(d.reschedule)
}

// kept returns the open clouds that another configuration does not change or leaves out.
func (d *daemon) kept(c *config.Config) (clouds []control.Cloud, left []config.Cloud) {
	for _, old := range slices.Concat(d.config.Clouds, d.left) {
		gone := !slices.Contains(c.CloudNames(), old.Name)
		if gone {
			left = append(left, old)
		}
		if gone || slices.ContainsFunc(c.Clouds, old.Same) {
			clouds = append(clouds, d.cloud(old.Name))
		}
	}
	return clouds, left
}

// openTimeout is how long opening the clouds of another configuration may take. Edits wait meanwhile.
const openTimeout = 30 * time.Second

// openChanged opens the clouds of a configuration that are not open, or configured differently.
func (d *daemon) openChanged(ctx context.Context, c *config.Config) ([]control.Cloud, error) {
	open := slices.Concat(d.config.Clouds, d.left)
	changed := slices.DeleteFunc(slices.Clone(c.Clouds), func(cloud config.Cloud) bool { return slices.ContainsFunc(open, cloud.Same) })
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return OpenClouds(ctx, changed, Opening{d.Program.Drivers, d.config.Fleet, d.folder.File("."), d.Log, d.counted})
}

// cloud returns the open cloud with this name.
func (d *daemon) cloud(name string) control.Cloud {
	return d.fleet.clouds[slices.IndexFunc(d.fleet.clouds, func(c control.Cloud) bool { return c.Name == name })]
}

// tellLeft logs what remains when the controller ends.
func (d *daemon) tellLeft(ctx context.Context) {
	s, err := d.fleet.Controller.Status(ctx)
	if err != nil {
		return
	}
	instances := 0
	for _, n := range s.Instances {
		instances += n
	}
	if instances+s.Jobs[drover.JobRunning]+s.Jobs[drover.JobQueued] == 0 {
		d.Log.Info("exited; no instances are left")
		return
	}
	d.Log.Info("exited; instances and jobs are left as they are, and the next drover serve continues with them",
		logkey.Instances, instances, logkey.Running, s.Jobs[drover.JobRunning], logkey.Queued, s.Jobs[drover.JobQueued])
}

// drained reports whether nothing runs and every instance that may go is gone, including any that only its cloud knew.
func (d *daemon) drained(ctx context.Context) (yes bool) {
	if err := d.fleet.Controller.Query(ctx, func(e *engine.Engine) { yes = e.Drained() && e.ListedTwice() }); err != nil {
		return false
	}
	return yes
}
