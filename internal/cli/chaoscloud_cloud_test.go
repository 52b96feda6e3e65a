//go:build chaos || e2e

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/driver"
)

// chaosCloud is a cloud with faults. It speaks the protocol of docs/clouds/external.md over a socket, and keeps a
// ledger of what really happened.
type chaosCloud struct {
	plan   cloudPlan
	folder string
	user   string
	port   string // of every instance's sshd; no other cloud uses it
	dice   *dice

	mu        sync.Mutex
	instances []*chaosInstance  // including ended ones; guarded by mu
	ledger    *json.Encoder     // guarded by mu
	met       map[faultKind]int // guarded by mu
}

// needSSHD skips a test on hosts without an OpenSSH server for the instances.
func needSSHD(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(sshd); err != nil {
		t.Skipf("the instances of this test are OpenSSH servers, and there is no %s: install Debian's openssh-server", sshd)
	}
}

// newChaosCloud runs a cloud in a folder until the test ends.
func newChaosCloud(t *testing.T, plan cloudPlan, folder string) *chaosCloud {
	t.Helper()
	me, err := user.Current()
	if err == nil && me.Uid == "0" {
		err = os.MkdirAll("/run/sshd", 0o755) // sshd needs it as root
	}
	ledger, ledgerErr := os.Create(filepath.Join(folder, "ledger.jsonl"))
	listener, listenErr := net.Listen("unix", filepath.Join(folder, "socket"))
	reserved, portErr := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, ledgerErr, listenErr, portErr); err != nil {
		t.Fatal(err)
	}
	c := &chaosCloud{plan: plan, folder: folder, user: me.Username, port: port(reserved), dice: newDice(plan.seed), ledger: json.NewEncoder(ledger), met: map[faultKind]int{}}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go c.converse(conn)
		}
	}()
	if c.dice.float() < plan.chances[massDeaths] {
		time.AfterFunc(c.dice.between(settled, grownOld), c.massDeath)
	}
	t.Cleanup(func() {
		listener.Close()
		reserved.Close()
		for _, in := range c.living() {
			in.kill()
		}
		ledger.Close()
	})
	return c
}

// port returns a listener's port.
func port(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

type (
	object = map[string]any

	// cloudRequest is a request of the protocol.
	cloudRequest struct {
		ID   int64  `json:"id"`
		Call string `json:"call"`
		Args struct {
			ID         string                        `json:"id"`
			Name       string                        `json:"name"`
			Tags       map[string]string             `json:"tags"`
			HostKey    string                        `json:"host_key"`
			PublicKey  string                        `json:"public_key"`
			Scripts    []string                      `json:"scripts"`
			Candidates []struct{ Type, Zone string } `json:"candidates"`
		} `json:"args"`
	}
)

// converse answers the requests of one controller concurrently.
func (c *chaosCloud) converse(conn net.Conn) {
	defer conn.Close()
	requests := json.NewDecoder(conn)
	for {
		var r cloudRequest
		if err := requests.Decode(&r); err != nil {
			return
		}
		go func() {
			time.Sleep(c.dice.between(5*time.Millisecond, 150*time.Millisecond)) // the latency of the request
			result, err := c.answer(r)
			reply := object{"id": r.ID, "result": result}
			if err != nil {
				reply = object{"id": r.ID, "error": object{"kind": drover.KindOf(err), "message": err.Error()}}
			}
			if line, err := json.Marshal(reply); err == nil && (result != nil || reply["error"] != nil) {
				conn.Write(append(line, '\n')) // one write for each line; a controller that is gone misses it
			}
		}()
	}
}

// answer answers one request; with neither result nor error there is no answer.
func (c *chaosCloud) answer(r cloudRequest) (object, error) {
	if r.Call == "destroy" {
		return object{}, c.destroy(r.Args.ID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Call {
	case "open":
		return c.open(), nil
	case "create":
		return c.create(r)
	case "list":
		return c.list(r.Args.Tags)
	case "describe":
		return c.describe(r.Args.ID)
	case "set_tags":
		in, err := c.find(r.Args.ID)
		if err == nil {
			in.tags = r.Args.Tags
		}
		return object{}, err
	}
	return nil, drover.Errorf(drover.KindUnsupported, "there is no call %s", r.Call)
}

// open is the first call of every controller.
func (c *chaosCloud) open() object {
	c.note("open", nil)
	c.hideOne(c.plan.chances[shortLists])
	can := object{"host_keys": "planted", "power_off": "ends", "list_lag": cmp.Or(c.plan.lag, listLag).String()}
	if c.plan.describe {
		can["calls"] = []string{"describe"}
	}
	return can
}

// hideOne makes lists leave out an instance for a while. It chooses one that old copies have too and that was not
// hidden recently, so that none is missing for longer than the cloud promises.
func (c *chaosCloud) hideOne(chance float64) {
	now := time.Now()
	var may []*chaosInstance
	for _, in := range c.instances {
		if in.lives() && now.Sub(in.created) > settled && now.Sub(in.hidden) > 2*listLag {
			may = append(may, in)
		}
	}
	if len(may) > 0 && c.dice.float() < chance {
		in := may[c.dice.below(len(may))]
		in.hidden = now.Add(c.dice.between(2*time.Second, longest))
		c.fault(shortLists, in)
	}
}

// list lists the instances, possibly as they were some seconds ago.
func (c *chaosCloud) list(tags map[string]string) (object, error) {
	if err := c.callError(); err != nil {
		return nil, err
	}
	now := time.Now()
	then := now
	if c.dice.float() < c.plan.chances[staleLists] {
		then = now.Add(-c.dice.between(time.Second, oldest))
		c.met[staleLists]++
	}
	c.hideOne(c.plan.chances[shortLists] / 20)
	listed, ids := []object{}, []string{}
	for _, in := range c.instances {
		if in.listed(now, then) && (driver.Instance{Tags: in.tags}).Bears(tags) {
			listed, ids = append(listed, c.show(in, then)), append(ids, in.id)
		}
	}
	c.note("list", object{"seconds_old": now.Sub(then).Seconds(), "answer": ids})
	return object{"instances": listed}, nil
}

// listed reports whether a list returned now, showing an earlier state, includes the instance.
func (in *chaosInstance) listed(now, then time.Time) bool {
	if now.Before(in.stale) {
		in.shown++
		return true
	}
	if in.lives() {
		return !in.created.After(then) && now.After(in.hidden)
	}
	return !in.created.After(then) && (in.ended.After(then) || now.Before(in.ended.Add(in.fate.listedFor)))
}

// show returns an instance, as it was then, in the protocol's form.
func (c *chaosCloud) show(in *chaosInstance, then time.Time) object {
	shown := object{"id": in.id, "tags": maps.Clone(in.tags), "type": in.kind, "zone": in.zone, "market": "on_demand", "state": "running",
		"public": in.address, "user": c.user, "created": timestamp(in.created)}
	if !in.lives() && !in.ended.After(then) && then.After(in.stale) {
		shown["state"], shown["ended"] = "stopping", timestamp(in.ended)
	}
	return shown
}

func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// describe returns the true state of one instance, if it answers, and when it ended.
func (c *chaosCloud) describe(id string) (object, error) {
	if err := c.callError(); err != nil {
		return nil, err
	}
	in, err := c.find(id)
	c.note("describe", object{"id": id, "lives": err == nil})
	if err == nil {
		return object{"instance": c.show(in, time.Now())}, nil
	}
	for _, in := range c.instances {
		if in.id == id {
			return object{"ended": timestamp(in.ended)}, nil
		}
	}
	return nil, err
}

func (c *chaosCloud) callError() error {
	if c.dice.float() < c.plan.chances[callErrors] {
		c.fault(callErrors, nil)
		return drover.Errorf(drover.KindTransient, "the cloud cannot say that now")
	}
	return nil
}

// find returns the living instance with an id.
func (c *chaosCloud) find(id string) (*chaosInstance, error) {
	for _, in := range c.instances {
		if in.id == id && in.lives() {
			return in, nil
		}
	}
	return nil, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
}

// create creates one instance with a name or, as a fault, two.
func (c *chaosCloud) create(r cloudRequest) (object, error) {
	for _, in := range c.instances {
		if in.name == r.Args.Name && in.lives() {
			return object{"instance": c.show(in, time.Now())}, nil
		}
	}
	fate := c.plan.draw(len(c.instances))
	in, err := c.make(r, fate)
	if err == nil && fate.twin {
		var twin *chaosInstance
		if twin, err = c.make(r, instanceFate{listedFor: fate.listedFor, hiddenFor: fate.hiddenFor}); err == nil {
			c.fault(twins, twin)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case fate.lost:
		c.fault(lostReply, in)
		if fate.unanswered {
			return nil, nil
		}
		return nil, drover.Errorf(drover.KindTransient, "something went wrong")
	}
	return object{"instance": c.show(in, time.Now())}, nil
}

func (c *chaosCloud) make(r cloudRequest, fate instanceFate) (*chaosInstance, error) {
	n, taken, pid := len(c.instances)+1, r.Args.Candidates[0], os.Getpid()
	in := &chaosInstance{id: fmt.Sprintf("i-%04d", n), name: r.Args.Name, kind: taken.Type, zone: taken.Zone, tags: r.Args.Tags, fate: fate, created: time.Now()}
	in.address = fmt.Sprintf("127.%d.%d.%d:%s", 16+pid/256%200, pid%256, n, c.port) // no other process's address
	in.folder = filepath.Join(c.folder, in.id)
	if err := in.boot(r.Args.HostKey, r.Args.PublicKey, r.Args.Scripts); err != nil {
		return nil, drover.Errorf(drover.KindTransient, "make %s: %v", in.id, err)
	}
	if fate.hiddenFor > 0 {
		in.hidden = in.created.Add(fate.hiddenFor)
	}
	c.instances = append(c.instances, in)
	c.note("create", object{"id": in.id, "name": in.name})
	go func() {
		in.cmd.Wait()
		c.endBill(in)
		close(in.buried)
	}()
	c.at(in, fate.dies, func() { c.fault(deaths, in); go in.kill() })
	c.at(in, fate.hangs, func() {
		c.fault(hangs, in)
		in.hang()
		if fate.hangsFor > 0 {
			time.AfterFunc(fate.hangsFor, in.thaw)
		}
	})
	c.at(in, fate.changesKey, func() {
		if in.changeHostKey() == nil {
			c.fault(newHostKeys, in)
		}
	})
	return in, nil
}

// at schedules a fault for when an instance reaches an age, if it lives that long; 0: never.
func (c *chaosCloud) at(in *chaosInstance, age time.Duration, becomes func()) {
	if age == 0 {
		return
	}
	time.AfterFunc(age, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if in.lives() {
			becomes()
		}
	})
}

// massDeath kills two thirds of all listed instances at once.
func (c *chaosCloud) massDeath() {
	for i, in := range c.living() {
		if i%3 < 2 && time.Since(in.created) > settled {
			c.at(in, time.Nanosecond, func() { c.fault(massDeaths, in); go in.kill() })
		}
	}
}

// destroy ends an instance, unless its fate prevents that. Destroying an instance that is gone is no error.
func (c *chaosCloud) destroy(id string) error {
	c.mu.Lock()
	for _, in := range c.instances {
		if in.id == id && !in.told {
			in.stale = time.Time{}
		}
	}
	in, err := c.find(id)
	if err != nil {
		c.mu.Unlock()
		return nil
	}
	c.note("destroy", object{"id": id})
	in.told = in.told || in.lives()
	var fault faultKind
	if len(in.fate.destroys) > 0 {
		fault, in.fate.destroys = in.fate.destroys[0], in.fate.destroys[1:]
		c.fault(fault, in)
	}
	c.mu.Unlock()
	if fault != failedDestroys && fault != idleDestroys {
		in.kill()
	}
	if fault == failedDestroys || fault == brokenDestroys {
		return drover.Errorf(drover.KindTransient, "the destroy went wrong")
	}
	return nil
}

// endBill records that an instance has no process left.
func (c *chaosCloud) endBill(in *chaosInstance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in.ended = time.Now()
	c.note("end", object{"id": in.id, "billed_seconds": in.ended.Sub(in.created).Seconds()})
}

func (c *chaosCloud) living() (all []*chaosInstance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range c.instances {
		if in.lives() {
			all = append(all, in)
		}
	}
	return all
}

// fault counts and records a fault.
func (c *chaosCloud) fault(kind faultKind, in *chaosInstance) {
	c.met[kind]++
	said := object{"fault": kind}
	if in != nil {
		said["id"] = in.id
	}
	c.note("fault", said)
}

// note writes a line to the ledger.
func (c *chaosCloud) note(what string, more object) {
	line := object{"at": time.Now().UTC().Format("15:04:05.000"), "what": what}
	maps.Copy(line, more)
	c.ledger.Encode(line)
}

// within polls until something holds, and reports whether it did in time.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
