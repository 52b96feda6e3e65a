package benchfleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// sizes are the vCPUs of the types that the cloud offers, each with a GiB of memory for every vCPU.
var sizes = []int{1, 2, 3, 4, 6, 8, 16}

// perCPU is the hourly price of a vCPU. It is the same for all types, so a good choice differs from a bad one only in
// how full the instances are.
const perCPU = drover.Money(50_000_000)

// cloud is a driver.Cloud whose instances are SSH servers in this process.
type cloud struct {
	quota int           // maximum number of instances at once
	boot  time.Duration // until an instance accepts logins
	tally *tally

	mu        sync.Mutex
	instances map[string]*instance // by id, which is also the name; guarded by mu
	created   int                  // guarded by mu
	refused   int                  // create calls beyond the quota; guarded by mu
	paid      time.Duration        // vCPU time of instances that are gone; guarded by mu
}

func newCloud(quota int, boot time.Duration, t *tally) *cloud {
	return &cloud{quota: quota, boot: boot, tally: t, instances: map[string]*instance{}}
}

// Capabilities declares that host keys are planted and that one type is tried at a time.
func (c *cloud) Capabilities() driver.Capabilities {
	return driver.Capabilities{HostKeys: driver.HostKeysPlanted, PowerOff: driver.PowerOffEnds, ListLag: -1}
}

// over returns the error of a call whose context has ended.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return drover.AsError(err, drover.KindTransient)
	}
	return nil
}

// Offerings lists the types, in one zone and market.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	var all []drover.Offering
	for _, n := range sizes {
		name := typeName(n)
		all = append(all, drover.Offering{
			Cloud: cloudName, Zone: zone, Market: drover.OnDemand, Price: perCPU * drover.Money(n),
			Type: drover.InstanceType{Name: name, ProviderType: name, Resources: resources(n)},
		})
	}
	return all, nil
}

func typeName(vcpus int) string { return fmt.Sprintf("cpu%02d", vcpus) }

func resources(vcpus int) drover.Resources {
	return drover.Resources{CPU: drover.MilliCPU(vcpus) * 1000, Memory: drover.Bytes(vcpus) * drover.GiB, Disk: drover.Bytes(vcpus) * drover.GiB, Arch: "amd64"}
}

// Create makes an instance, which starts to boot.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	if err := over(ctx); err != nil {
		return driver.Instance{}, driver.Candidate{}, err
	}
	if len(r.Candidates) == 0 {
		return driver.Instance{}, driver.Candidate{}, drover.Errorf(drover.KindInvalid, "there are no candidates")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := r.Candidates[0]
	if in := c.instances[r.Name]; in != nil {
		return in.said, taken, nil
	}
	if len(c.instances) >= c.quota {
		c.refused++
		return driver.Instance{}, driver.Candidate{}, &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll,
			Message: fmt.Sprintf("the account may have no more than %d instances", c.quota)}
	}
	in, err := c.begin(r, taken)
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, drover.AsError(err, drover.KindInvalid)
	}
	c.instances[r.Name] = in
	c.created++
	return in.said, taken, nil
}

func (c *cloud) begin(r driver.CreateRequest, taken driver.Candidate) (*instance, error) {
	at := slices.IndexFunc(sizes, func(n int) bool { return typeName(n) == taken.ProviderType })
	if at < 0 {
		return nil, drover.Errorf(drover.KindInvalid, "there is no type %s", taken.ProviderType)
	}
	key, err := ssh.ParsePrivateKey([]byte(r.HostKey.Reveal()))
	if err != nil {
		return nil, err
	}
	login, _, _, _, err := ssh.ParseAuthorizedKey([]byte(r.PublicKey))
	if err != nil {
		return nil, err
	}
	in := &instance{
		vcpus: sizes[at], created: time.Now(), ready: time.Now().Add(c.boot),
		runner: newRunner(r.Name, sizes[at], c.tally),
		said: driver.Instance{
			ID: r.Name, Tags: maps.Clone(r.Tags), ProviderType: taken.ProviderType, Zone: taken.Zone, Market: taken.Market,
			State: driver.Running, Created: drover.TimeOf(time.Now()),
		},
	}
	return in, in.listen(key, login)
}

// List returns all existing instances.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	if err := over(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []driver.Instance
	for _, in := range c.instances {
		if in.said.Bears(tags) {
			said := in.said
			said.Tags = maps.Clone(said.Tags)
			list = append(list, said)
		}
	}
	return list, nil
}

// Destroy ends an instance at once.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	if err := over(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	in := c.instances[id]
	delete(c.instances, id)
	if in != nil {
		c.paid += in.bill()
	}
	c.mu.Unlock()
	if in != nil {
		in.close()
	}
	return nil
}

// SetTags replaces an instance's tags.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	if err := over(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.instances[id]
	if in == nil {
		return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	in.said.Tags = maps.Clone(tags)
	return nil
}

// VerifyHostKey is unsupported: the host keys were planted.
func (c *cloud) VerifyHostKey(_ context.Context, _ driver.Instance, _, _ []byte) error {
	return drover.Errorf(drover.KindUnsupported, "host keys are installed through user data here")
}

// Close leaves the instances running.
func (c *cloud) Close() error { return nil }

// end destroys the remaining instances.
func (c *cloud) end() error {
	c.mu.Lock()
	left := slices.Collect(maps.Keys(c.instances))
	c.mu.Unlock()
	var errs []error
	for _, id := range left {
		errs = append(errs, c.Destroy(context.Background(), id))
	}
	return errors.Join(errs...)
}

// bill returns the vCPU time paid so far, including instances that are gone.
func (c *cloud) bill() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.paid
	for _, in := range c.instances {
		sum += in.bill()
	}
	return sum
}

// sum returns how many instances were created, how many creates were refused, and the paid vCPU time.
func (c *cloud) sum() (created, refused int, paid time.Duration) {
	paid = c.bill()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.created, c.refused, paid
}
