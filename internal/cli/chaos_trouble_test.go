//go:build chaos

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover"
)

// role is the kind of a fleet's process.
type role string

const (
	isController role = "controller"
	isInstance   role = "instance"
	isGuest      role = "guest"
	isBridge     role = "bridge" // carries an SSH channel to the runner
	isRunner     role = "runner"
	isSupervisor role = "supervisor"
	isJob        role = "job"
)

// roleOf returns a process's role, empty if it does not belong to the fleet.
func roleOf(pid int) role {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	if bytes.Contains(environ, []byte("DROVER_ATTEMPT_DIR=")) {
		return isJob
	}
	args := strings.Fields(commandLine(pid))
	if len(args) < 2 {
		return ""
	}
	switch args[1] {
	case "serve":
		return isController
	case "local-instance":
		if len(args) > 2 && args[2] == "-guest" {
			return isGuest
		}
		return isInstance
	case "control", "bulk":
		return isBridge
	case "daemon":
		return isRunner
	case "supervise":
		return isSupervisor
	}
	return ""
}

// trouble is one kind of bad luck. Bring returns what it did, or nothing if it found no target.
type trouble struct {
	weight int
	with   part
	name   string
	bring  func() string
}

// part is what a trouble affects. Each part is left alone for a spell now and then: otherwise events that need time,
// such as timeouts, would never occur.
type part int

const (
	withController part = iota
	withInstances
	withNetwork
	withPeople
	parts
)

// chaos causes trouble in a fleet.
type chaos struct {
	place   *place
	dice    *dice
	network *network
	warden  *warden
	disk    *disk
	ledger  *ledger
	client  drover.Service

	ctx    context.Context // ends when the trouble is over
	passes sync.WaitGroup  // lasting troubles
	met    map[string]int  // number of troubles, by name
}

func (c *chaos) troubles() []trouble {
	all := []trouble{
		{6, withController, "kill a controller", c.strike(isController)},
		{8, withInstances, "kill a runner", c.strike(isRunner)},
		{8, withInstances, "kill a supervisor", c.strike(isSupervisor)},
		{8, withInstances, "kill a job", c.strike(isJob)},
		{4, withInstances, "kill a bridge", c.strike(isBridge)},
		{2, withInstances, "kill a guest", c.strike(isGuest)},
		{2, withInstances, "kill an instance", c.strike(isInstance)},
		{3, withController, "stop a controller", c.pause(isController, 6*time.Second)},
		{4, withInstances, "stop a runner", c.pause(isRunner, 8*time.Second)},
		{4, withInstances, "stop a supervisor", c.pause(isSupervisor, 8*time.Second)},
		{4, withInstances, "stop a job", c.pause(isJob, 4*time.Second)},
		{2, withInstances, "stop a guest", c.pause(isGuest, 8*time.Second)},
		{2, withInstances, "stop an instance", c.pause(isInstance, 8*time.Second)},
		{3, withInstances, "hang an instance", c.hang},
		{4, withNetwork, "cut every connection", func() string { return fmt.Sprint(c.network.cut(), " connections") }},
		{4, withNetwork, "cut off an instance", c.darken(0)},
		{1, withNetwork, "cut off all instances", c.darken(1)},
		{6, withPeople, "cancel", c.cancel},
		{2, withPeople, "lower a priority to 0 and raise it again", c.lower},
		{5, withPeople, "instruct an instance", c.instruct},
		{1, withPeople, "reload the configuration", c.reload},
	}
	if c.disk.path != "" {
		all = append(all, trouble{2, withController, "fill the disk", c.fill})
	}
	return all
}

// run causes one trouble after another until the time is up, and then ends those that persist.
func (c *chaos) run() {
	all := c.troubles()
	alone, until := part(c.dice.below(int(parts))), time.Now().Add(spell)
	for c.wait(c.dice.between(50*time.Millisecond, 450*time.Millisecond)) {
		if time.Now().After(until) {
			alone, until = (alone+1)%parts, time.Now().Add(spell)
		}
		if tr := c.draw(all); tr.with != alone {
			c.meet(tr)
		}
	}
	c.network.settle()
	c.passes.Wait()
}

// spell is how long a part is left alone: longer than any timeout in the configuration.
const spell = 12 * time.Second

// draw chooses one of the troubles, by their weights.
func (c *chaos) draw(all []trouble) trouble {
	weights := 0
	for _, tr := range all {
		weights += tr.weight
	}
	n := c.dice.below(weights)
	for _, tr := range all {
		if n -= tr.weight; n < 0 {
			return tr
		}
	}
	return trouble{} // not reached
}

// meet causes a trouble and writes it into the controllers' log.
func (c *chaos) meet(tr trouble) {
	if did := tr.bring(); did != "" {
		c.met[tr.name]++
		fmt.Fprintf(c.warden.log, "%s CHAOS %s: %s\n", time.Now().UTC().Format("15:04:05.000"), tr.name, did)
	}
}

// wait waits, and reports whether the trouble goes on.
func (c *chaos) wait(d time.Duration) bool {
	select {
	case <-c.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// all returns the fleet's processes with a role.
func (c *chaos) all(r role) (pids []int) {
	for _, pid := range processesOf(c.place.state) {
		if roleOf(pid) == r {
			pids = append(pids, pid)
		}
	}
	return pids
}

// one takes hold of a process with a role, if there is one.
func (c *chaos) one(r role) (h handle, pid int, ok bool) {
	pids := c.all(r)
	if len(pids) == 0 {
		return h, 0, false
	}
	pid = pids[c.dice.below(len(pids))]
	h, ok = take(pid, r)
	return h, pid, ok
}

// strike kills one process with a role.
func (c *chaos) strike(r role) func() string {
	return func() string {
		h, pid, ok := c.one(r)
		if !ok {
			return ""
		}
		defer h.close()
		h.signal(unix.SIGKILL)
		return fmt.Sprint("process ", pid)
	}
}

// pause stops one process with a role for a while.
func (c *chaos) pause(r role, longest time.Duration) func() string {
	return func() string {
		h, pid, ok := c.one(r)
		if !ok {
			return ""
		}
		return fmt.Sprintf("process %d for %v", pid, c.freeze([]handle{h}, c.dice.between(100*time.Millisecond, longest)))
	}
}

// hang stops all processes of an instance for a while, possibly for longer than probe_timeout.
func (c *chaos) hang() string {
	var handles []handle
	outers := c.all(isInstance)
	if len(outers) == 0 {
		return ""
	}
	folder := instanceFolderOf(outers[c.dice.below(len(outers))])
	for _, pid := range processesOf(folder) {
		if h, ok := take(pid, roleOf(pid)); ok {
			handles = append(handles, h)
		}
	}
	return fmt.Sprintf("%d processes of %s for %v", len(handles), filepath.Base(folder), c.freeze(handles, c.dice.between(time.Second, 12*time.Second)))
}

// instanceFolderOf returns the folder of a process's instance.
func instanceFolderOf(pid int) string {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for _, pair := range strings.Split(string(environ), "\x00") {
		if folder, ok := strings.CutPrefix(pair, "DROVER_LOCAL_INSTANCE="); ok {
			return folder
		}
	}
	return "/nowhere"
}

// freeze stops processes for a while, at most until all trouble is over.
func (c *chaos) freeze(handles []handle, d time.Duration) time.Duration {
	for _, h := range handles {
		h.signal(unix.SIGSTOP)
	}
	c.passes.Go(func() {
		c.wait(d)
		for _, h := range handles {
			h.signal(unix.SIGCONT)
			h.close()
		}
	})
	return d
}

// handle holds on to a process, so that its pid cannot be reused unnoticed.
type handle int

// take takes hold of a process if it still has its role.
func take(pid int, r role) (handle, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, false
	}
	if roleOf(pid) != r {
		unix.Close(fd)
		return 0, false
	}
	return handle(fd), true
}

func (h handle) signal(sig unix.Signal) { unix.PidfdSendSignal(int(h), sig, nil, 0) }
func (h handle) close()                 { unix.Close(int(h)) }

func (c *chaos) darken(share float64) func() string {
	return func() string {
		d := c.dice.between(500*time.Millisecond, 9*time.Second)
		n := c.network.darken(share, d)
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d for %v", n, d)
	}
}

// fill fills the controller's disk for a while. The controller may end then, and the next may fail to start.
func (c *chaos) fill() string {
	if !c.disk.full.TryLock() {
		return ""
	}
	d := c.dice.between(500*time.Millisecond, 4*time.Second)
	c.warden.pardon(d + 5*time.Second)
	c.passes.Go(func() {
		defer c.disk.full.Unlock()
		ctx, cancel := context.WithTimeout(c.ctx, d)
		defer cancel()
		if err := c.disk.fill(ctx); err != nil {
			c.ledger.fault("filling the disk: %v", err)
		}
	})
	return fmt.Sprint("for ", d)
}

// ask returns a context for one request to the controller, which may be dead, stopped or out of disk space.
func (c *chaos) ask() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, 3*time.Second)
}

func (c *chaos) cancel() string {
	id, ok := c.ledger.victim(c.dice)
	if !ok {
		return ""
	}
	c.passes.Go(func() {
		ctx, cancel := c.ask()
		defer cancel()
		_, err := c.client.Cancel(ctx, id, "chaos")
		c.ledger.cancelled(id, err)
	})
	return id.String()
}

func (c *chaos) lower() string {
	id, ok := c.ledger.someJob(c.dice)
	if !ok {
		return ""
	}
	c.passes.Go(func() {
		ctx, cancel := c.ask()
		defer cancel()
		if _, err := c.client.SetPriority(ctx, id, 0); err == nil {
			c.wait(c.dice.between(0, 2*time.Second))
		}
		c.ledger.lowered(id)
	})
	return id.String()
}

func (c *chaos) instruct() string {
	verb := drover.Verbs()[c.dice.below(len(drover.Verbs()))]
	c.passes.Go(func() {
		ctx, cancel := c.ask()
		defer cancel()
		page, err := c.client.Instances(ctx, drover.InstanceFilter{})
		if err != nil || len(page.Items) == 0 {
			return
		}
		in := page.Items[c.dice.below(len(page.Items))]
		if in.Idle == drover.IdleHold {
			verb = drover.VerbRelease // held instances keep others from being rented
		}
		// Most fail because they come at a bad moment, which is fine.
		_, _ = c.client.Instruct(ctx, in.Name, verb, "chaos")
	})
	return string(verb)
}

func (c *chaos) reload() string {
	pids := c.all(isController)
	if len(pids) == 0 {
		return ""
	}
	// The signal would end a controller that does not handle signals yet.
	if h, ok := take(pids[0], isController); ok && c.answers() {
		defer h.close()
		h.signal(syscall.SIGHUP)
		return fmt.Sprint("process ", pids[0])
	}
	return ""
}

func (c *chaos) answers() bool {
	ctx, cancel := c.ask()
	defer cancel()
	_, err := c.client.Status(ctx)
	return err == nil
}
