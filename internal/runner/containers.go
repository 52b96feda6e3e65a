package runner

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"drover/internal/container"
	"drover/internal/wire"
)

// probePatience bounds the search for a container runtime.
const probePatience = 30 * time.Second

// containers is the instance's container runtime, and the images that it fetches. The daemon searches for a runtime
// when an attempt needs an image, until it finds one.
type containers struct {
	log   *log.Logger
	sweep func(container.Runtime) // called in the background when a runtime is found

	mu     sync.Mutex
	wanted string            // the runtime that was searched for
	found  container.Runtime // nil if none was found yet
	user   string
	images *container.Images
}

// find returns the instance's runtime: the wanted one or, if wanted is empty, the first that works.
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
	c.log.Printf("running images with %s, as user %s", r.Name(), user)
	c.wanted, c.found, c.user, c.images = wanted, r, user, container.NewImages(r, c.log)
	go c.sweep(r)
	return r, nil
}

// fetch returns the image, fetched if it is missing, and the user that its containers run as. find must have succeeded
// before.
func (c *containers) fetch(ctx context.Context, ref string) (i container.Image, user string, err error) {
	c.mu.Lock()
	images, user := c.images, c.user
	c.mu.Unlock()
	i, err = images.Get(ctx, ref)
	return i, user, err
}

// initPath is the path of this program in a container, where it is the first process. The program recognizes its role
// by this name.
const initPath = "/drover-runner"

// containerFor fetches an attempt's image and describes its container.
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
		if err := os.Chmod(program, 0o755); err != nil { // still, only root can enter its folder
			return nil, err
		}
	}
	labels := d.labels()
	labels["drover.attempt"] = m.ID.String()
	return &container.Spec{
		Name:    a.sandbox.Name,
		Labels:  labels,
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

// wantedRuntime returns the runtime that the controller orders; empty if it leaves the choice to the instance.
func (d *daemon) wantedRuntime() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orders.last == nil {
		return ""
	}
	return d.orders.last.Runtime
}

// labels returns the labels that all this instance's containers have.
func (d *daemon) labels() map[string]string {
	return map[string]string{"drover.fleet": d.identity.Fleet, "drover.instance": d.identity.Instance}
}

// sweep removes the containers of attempts that the daemon no longer has: an earlier removal may have failed.
func (d *daemon) sweep(r container.Runtime) {
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	names, err := r.List(ctx, d.labels())
	if err != nil {
		d.log.Printf("listing containers: %v", err)
	}
	for _, name := range names {
		if d.knows(name) {
			continue
		}
		d.log.Printf("removing container %s of a forgotten attempt", name)
		if err := r.Remove(ctx, name); err != nil {
			d.log.Printf("removing container %s: %v", name, err)
		}
	}
}

// knows reports whether a container belongs to an attempt that the daemon has.
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

// runtimeFailed is the exit code with which container runtimes report that they failed, and not the command.
const runtimeFailed = 125

// noRuntime returns why no attempt with an image can run here. If the runtime does not work, another instance's may; if
// none is installed, other instances are unlikely to have one, since they boot the same image.
func noRuntime(image string, err error) error {
	e := &container.ImageError{Image: image, Why: container.Unreachable, Text: "the instance has no working container runtime: " + err.Error()}
	if found, ok := errors.AsType[*container.FindError](err); ok && found.NoneInstalled() {
		e.Why, e.Text = container.NoRuntime, err.Error()
	}
	return e
}

// oneLine returns the text of err on one line.
func oneLine(err error) string {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return err.Error()
	}
	var texts []string
	for _, e := range many.Unwrap() {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "; ")
}
