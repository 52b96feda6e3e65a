package drivertest_test

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// account is a cloud in memory. Its instances are SSH servers in this process that accept logins and do nothing.
type account struct {
	mu        sync.Mutex
	instances map[string]*fake // by fleet and name; guarded by mu
	openDoor  bool             // new instances accept any key; guarded by mu
}

type fake struct {
	driver.Instance
	hostKey []byte
	server  *ssh.Server
	home    string
}

// open opens the account for a fleet.
func (a *account) open(fleet string) driver.Cloud { return &handle{a, fleet} }

type handle struct {
	*account
	fleet string
}

func (h *handle) Capabilities() driver.Capabilities {
	return driver.Capabilities{HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffEnds}
}

func (h *handle) Offerings(ctx context.Context) ([]drover.Offering, error) {
	offering := func(name string, price drover.Money) drover.Offering {
		size := drover.Resources{CPU: 1000, Memory: drover.GiB, Arch: "amd64"}
		t := drover.InstanceType{Name: name, ProviderType: name, Resources: size}
		return drover.Offering{Cloud: "fake", Zone: "z", Type: t, Market: drover.OnDemand, Price: price}
	}
	return []drover.Offering{offering("a", 2), offering("b", 1)}, ctx.Err()
}

func (h *handle) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return driver.Instance{}, driver.Candidate{}, err
	}
	if len(r.Candidates) == 0 || r.Candidates[0].ProviderType == "no-such-type" {
		return driver.Instance{}, driver.Candidate{}, drover.Errorf(drover.KindInvalid, "nothing to create")
	}
	id := h.fleet + "/" + r.Name
	f, ok := h.instances[id]
	if !ok {
		var err error
		if f, err = boot(r, h.openDoor); err != nil {
			return driver.Instance{}, driver.Candidate{}, err
		}
		f.ID = id
		h.instances[id] = f
	}
	return f.Instance, driver.Candidate{ProviderType: f.ProviderType, Zone: f.Zone, Market: f.Market}, nil
}

func boot(r driver.CreateRequest, openDoor bool) (*fake, error) {
	host, err := gossh.ParsePrivateKey([]byte(r.HostKey.Reveal()))
	if err != nil {
		return nil, err
	}
	planted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "fake")
	if err != nil {
		return nil, err
	}
	env := append(os.Environ(), "TMPDIR="+home)
	for _, script := range kit.Scripts(r) {
		cmd := exec.Command("sh", "-c", script.Reveal())
		cmd.Env = env
		if err := cmd.Run(); err != nil {
			return nil, err
		}
	}
	server := &ssh.Server{
		Handler: func(s ssh.Session) {
			cmd := exec.Command("sh", "-c", s.RawCommand())
			cmd.Env, cmd.Stdout, cmd.Stderr = env, s, s.Stderr()
			cmd.Run()
			s.Exit(cmd.ProcessState.ExitCode())
		},
		HostSigners:      []ssh.Signer{host},
		PublicKeyHandler: func(_ ssh.Context, key ssh.PublicKey) bool { return openDoor || ssh.KeysEqual(key, planted) },
	}
	go server.Serve(listener)
	c := r.Candidates[0]
	return &fake{
		Instance: driver.Instance{
			Tags: maps.Clone(r.Tags), ProviderType: c.ProviderType, Zone: c.Zone, Market: c.Market, State: driver.Running,
			Addresses: driver.Addresses{Public: listener.Addr().String(), User: "x"},
		},
		hostKey: host.PublicKey().Marshal(),
		server:  server,
		home:    home,
	}, nil
}

func (h *handle) List(ctx context.Context, _ map[string]string) (all []driver.Instance, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.instances {
		in := f.Instance
		in.Tags = maps.Clone(in.Tags)
		all = append(all, in, in) // the contract allows both extra instances and duplicates
	}
	return all, ctx.Err()
}

func (h *handle) Destroy(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if f, ok := h.instances[id]; ok {
		f.server.Close()
		os.RemoveAll(f.home)
		delete(h.instances, id)
	}
	return nil
}

func (h *handle) SetTags(ctx context.Context, id string, tags map[string]string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	f, ok := h.instances[id]
	if !ok {
		return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	f.Tags = maps.Clone(tags)
	return nil
}

func (h *handle) VerifyHostKey(_ context.Context, in driver.Instance, key, _ []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f, ok := h.instances[in.ID]; ok && string(f.hostKey) == string(key) {
		return nil
	}
	return drover.Errorf(drover.KindHostKey, "not the host key of %s", in.ID)
}

func (h *handle) Close() error { return nil }

// littered is a cloud with a leftover.
type littered struct {
	driver.Cloud
	left driver.Leftover
}

func (l littered) Leftovers(context.Context, string) ([]driver.Leftover, error) {
	return []driver.Leftover{l.left}, nil
}

func (l littered) Remove(context.Context, driver.Leftover) error { return nil }

// fleetKey is a key that the instances of the suite's fleet share.
func fleetKey(id string) driver.Leftover {
	return driver.Leftover{Kind: "key", ID: id, Shared: true, Tags: map[string]string{driver.TagFleet: "suite"}}
}

// sharing is a cloud in which instances share keys.
type sharing struct {
	driver.Cloud
	keys *[]driver.Leftover
}

func (s sharing) Leftovers(context.Context, string) ([]driver.Leftover, error) {
	return slices.Clone(*s.keys), nil
}

func (s sharing) Remove(_ context.Context, key driver.Leftover) error {
	*s.keys = slices.DeleteFunc(*s.keys, func(k driver.Leftover) bool { return k.ID == key.ID })
	return nil
}

// remembering is a cloud that returns these past prices.
type remembering struct {
	driver.Cloud
	points []driver.PricePoint
}

func (r remembering) PriceHistory(context.Context, string, string, drover.Market, drover.Time) ([]driver.PricePoint, error) {
	return r.points, nil
}

// finding is a cloud that finds these images, whatever the reference.
type finding struct {
	driver.Cloud
	find func() ([]driver.Image, error)
}

func (f finding) FindImages(context.Context, string, drover.Arch) ([]driver.Image, error) {
	return f.find()
}

// altered is a cloud with some methods replaced.
type altered struct {
	driver.Cloud
	capabilities *driver.Capabilities
	offerings    func([]drover.Offering) []drover.Offering
	create       func(context.Context, driver.CreateRequest) (driver.Instance, driver.Candidate, error)
	list         func(context.Context, map[string]string) ([]driver.Instance, error)
	destroy      func(context.Context, string) error
	setTags      func(context.Context, string, map[string]string) error
	verify       func() error
	close        func() error
}

func (a altered) Capabilities() driver.Capabilities {
	if a.capabilities != nil {
		return *a.capabilities
	}
	return a.Cloud.Capabilities()
}

func (a altered) Offerings(ctx context.Context) ([]drover.Offering, error) {
	all, err := a.Cloud.Offerings(ctx)
	if a.offerings != nil {
		all = a.offerings(all)
	}
	return all, err
}

func (a altered) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	if a.create != nil {
		return a.create(ctx, r)
	}
	return a.Cloud.Create(ctx, r)
}

func (a altered) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	if a.list != nil {
		return a.list(ctx, tags)
	}
	return a.Cloud.List(ctx, tags)
}

func (a altered) Destroy(ctx context.Context, id string) error {
	if a.destroy != nil {
		return a.destroy(ctx, id)
	}
	return a.Cloud.Destroy(ctx, id)
}

func (a altered) SetTags(ctx context.Context, id string, tags map[string]string) error {
	if a.setTags != nil {
		return a.setTags(ctx, id, tags)
	}
	return a.Cloud.SetTags(ctx, id, tags)
}

func (a altered) VerifyHostKey(ctx context.Context, in driver.Instance, key, output []byte) error {
	if a.verify != nil {
		return a.verify()
	}
	return a.Cloud.VerifyHostKey(ctx, in, key, output)
}

func (a altered) Close() error {
	if a.close != nil {
		return a.close()
	}
	return a.Cloud.Close()
}

// stoppable is a cloud that stops instances by calling stop, and starts them by doing nothing.
type stoppable struct {
	altered
	stop func(id string)
}

func (s stoppable) Capabilities() driver.Capabilities {
	can := s.Cloud.Capabilities()
	can.StopStart = true
	return can
}

func (s stoppable) Stop(_ context.Context, id string) error { s.stop(id); return nil }
func (s stoppable) Start(context.Context, string) error     { return nil }

// growable is a cloud that declares that its volumes can grow.
type growable struct {
	altered
	grow func(id string) error
}

func (g growable) Capabilities() driver.Capabilities {
	can := g.Cloud.Capabilities()
	can.GrowDisk = true
	return can
}

func (g growable) GrowDisk(_ context.Context, id string, _ drover.Bytes) error { return g.grow(id) }

// describable is a cloud that can describe one instance, and declares this list lag.
type describable struct {
	altered
	lag      time.Duration
	describe func(ctx context.Context, id string) (driver.Instance, error)
}

func (d describable) Capabilities() driver.Capabilities {
	can := d.Cloud.Capabilities()
	can.Describe, can.ListLag = true, d.lag
	return can
}

func (d describable) Describe(ctx context.Context, id string) (driver.Instance, error) {
	if err := ctx.Err(); err != nil {
		return driver.Instance{}, err
	}
	return d.describe(ctx, id)
}

// looking finds one instance in a cloud's list.
func looking(c driver.Cloud) func(context.Context, string) (driver.Instance, error) {
	return func(ctx context.Context, id string) (driver.Instance, error) {
		all, err := c.List(ctx, nil)
		if at := slices.IndexFunc(all, func(in driver.Instance) bool { return in.ID == id }); at >= 0 {
			return all[at], nil
		}
		return driver.Instance{}, cmp.Or(err, error(drover.Errorf(drover.KindNotFound, "there is no instance %s", id)))
	}
}

var errPlain = errors.New("something went wrong")

// withOpenDoor makes an account whose instances accept any key.
func withOpenDoor(c driver.Cloud) driver.Cloud {
	h := c.(*handle)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openDoor = true
	return c
}

func otherKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	drivertest.Must(t, err)
	block, err := gossh.MarshalPrivateKey(private, "")
	drivertest.Must(t, err)
	return string(pem.EncodeToMemory(block))
}
