package runner

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"drover"
	"drover/internal/container"
	"drover/internal/wire"
)

// probePatience bounds the look for a container runtime.
const probePatience = 30 * time.Second

// containers is the instance's container runtime, and the images that are fetched with it. It is looked for when the
// first image is wanted, and again until one is found.
type containers struct {
	log   *log.Logger
	sweep func(container.Runtime) // called in the background when a runtime is found

	mu     sync.Mutex
	wanted string            // what was looked for
	found  container.Runtime // nil if none was found yet
	user   string
	images *container.Images
}

// find returns the instance's runtime: the one that is wanted, or the first that works.
func (c *containers) find(ctx context.Context, wanted string) (container.Runtime, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil && c.wanted == wanted {
		return c.found, nil
	}
	names := container.Names()
	if wanted != "" {
		names = []string{wanted}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probePatience, fmt.Errorf("no answer within %v", probePatience))
	defer cancel()
	r, user, err := container.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	c.log.Printf("images run with %s, as user %s", r.Name(), user)
	c.wanted, c.found, c.user, c.images = wanted, r, user, container.NewImages(r, c.log)
	go c.sweep(r)
	return r, nil
}

// fetch returns the image, fetched if need be, and as whom it runs. find came before.
func (c *containers) fetch(ctx context.Context, ref string) (i container.Image, user string, err error) {
	c.mu.Lock()
	images, user := c.images, c.user
	c.mu.Unlock()
	i, err = images.Get(ctx, ref)
	return i, user, err
}

// initPath is where a container finds this program, which is its first process, and is told by its name what it is
// meant to be.
const initPath = "/drover-runner"

// containerFor describes the container of an attempt, whose image the instance has from then on.
func (d *daemon) containerFor(ctx context.Context, a *attempt, m wire.Start) (*container.Spec, error) {
	image, user, err := d.containers.fetch(ctx, m.Image)
	if err != nil {
		return nil, err
	}
	command := m.Command
	if len(command) == 0 {
		command = image.Command()
	}
	if len(command) == 0 {
		return nil, &container.ImageError{Image: m.Image, Why: container.NoCommand, Text: "neither the image nor the job has a command"}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if uid := a.sandbox.UID; uid != 0 {
		user = fmt.Sprintf("%d:%d", uid, uid)
		if err := os.Chmod(program, 0o755); err != nil { // its folder is root's alone all the same
			return nil, err
		}
	}
	return &container.Spec{
		Name:    a.sandbox.Name,
		Labels:  d.labels(m.ID.String()),
		Image:   m.Image,
		Command: append([]string{initPath, "init"}, command...),
		Dir:     a.folder.work(),
		User:    user,
		Limits:  m.Limits,
		Mounts: []container.Mount{
			{Source: a.folder.work(), Target: a.folder.work()},
			{Source: a.folder.told(), Target: a.folder.told(), ReadOnly: true},
			{Source: program, Target: initPath, ReadOnly: true},
		},
	}, nil
}

// wantedRuntime is what the controller wants images to run with; empty if it leaves that to the instance.
func (d *daemon) wantedRuntime() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orders.last == nil {
		return ""
	}
	return d.orders.last.Runtime
}

// labels are those of this instance's containers; without an attempt, those that all of them bear.
func (d *daemon) labels(attempt string) map[string]string {
	all := map[string]string{"drover.fleet": d.identity.Fleet, "drover.instance": d.identity.Instance}
	if attempt != "" {
		all["drover.attempt"] = attempt
	}
	return all
}

// sweep removes the containers of attempts that are not known here any more: of some it could not be done in their
// time.
func (d *daemon) sweep(r container.Runtime) {
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	names, err := r.List(ctx, d.labels(""))
	if err != nil {
		d.log.Printf("listing containers: %v", err)
	}
	for _, name := range names {
		if d.knows(name) {
			continue
		}
		d.log.Printf("removing container %s, of an attempt that is no longer known", name)
		if err := r.Remove(ctx, name); err != nil {
			d.log.Printf("removing container %s: %v", name, err)
		}
	}
}

// knows reports whether a container is of an attempt that the daemon has.
func (d *daemon) knows(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		if d.sandboxName(a.id) == name {
			return true
		}
	}
	return false
}

// noImage is the exit of an attempt whose image could not be had.
func noImage(err *container.ImageError) drover.Exit {
	e := noStart(runtimeFailed, err)
	if e.Cause = drover.CauseNoImage; err.Final() {
		e.Cause = drover.CauseImage
	}
	return e
}

// runtimeFailed is the exit code by which container runtimes say that they failed, and not the command.
const runtimeFailed = 125

// noRuntime is why nothing with an image can run here. Another instance may have a runtime that works, but hardly one
// that is installed where none is here: they boot the same image.
func noRuntime(image string, err error) error {
	e := &container.ImageError{Image: image, Why: container.Unreachable, Text: "the instance has no working container runtime: " + err.Error()}
	if found := (*container.FindError)(nil); errors.As(err, &found) && found.NoneInstalled() {
		e.Why, e.Text = container.NoRuntime, err.Error()
	}
	return e
}

// oneLine joins the errors that err is made of.
func oneLine(err error) string {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return err.Error()
	}
	text := ""
	for i, e := range many.Unwrap() {
		if i > 0 {
			text += "; "
		}
		text += e.Error()
	}
	return text
}
