package external

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// The optional calls of a program.
const (
	callOfferings = "offerings"
	callImages    = "images"
	callVerify    = "verify_host_key"
	callStrays    = "strays" // and with it, remove
	callDescribe  = "describe"
	callAttribute = "attribute"
)

// call makes one call and reads its answer into result. Every error has a kind, except that of a context that ended.
func (c *cloud) call(ctx context.Context, name string, args, result any) (err error) {
	defer func() {
		if c.o.Metric != nil {
			c.o.Metric(name, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	if args == nil {
		args = struct{}{}
	}
	options := c.config.Options
	if options == nil {
		options = map[string]string{}
	}
	id := c.ids.Add(1)
	line, err := json.Marshal(request{version, id, name, c.o.Name, c.o.Fleet, c.o.Folder, options, args})
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "%s: %v", name, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, errTimeout)
	defer cancel()
	answer, err := c.program.speak(limited, name, id, append(line, '\n'))
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", name, ctx.Err())
	case err != nil && limited.Err() != nil:
		return drover.Errorf(drover.KindTransient, "%s: the driver program did not answer within %v", name, c.config.Timeout)
	case err != nil:
		return drover.Errorf(drover.KindTransient, "%s: %v", name, err)
	}
	if err := decode(answer, id, result); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Offerings returns the configured offerings, otherwise the program's.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	if len(c.config.Types) > 0 {
		listing := kit.StaticOptions{Cloud: c.o.Name, Zones: c.config.Zones, Markets: c.config.Markets, Discount: c.config.SpotDiscount,
			Default: drover.Resources{CPU: 1000, Memory: drover.GiB, Disk: 10 * drover.GiB, Arch: "amd64"}}
		all, err := kit.StaticOfferings(c.config.Types, listing)
		if err == nil {
			err = ctx.Err()
		}
		return all, err
	}
	if !slices.Contains(c.calls, callOfferings) {
		return nil, drover.Errorf(drover.KindInvalid, "cloud %s has no configured types, and its driver program lists none", c.o.Name).
			WithHint("write types: [{name: small, vcpus: 2, memory: 4Gi, price: 0.05}]")
	}
	var said offered
	if err := c.call(ctx, callOfferings, nil, &said); err != nil {
		return nil, err
	}
	if said.Offerings == nil {
		return nil, unclear("the reply has no offerings")
	}
	var all []drover.Offering
	for i, o := range *said.Offerings {
		one, err := o.check(c.o.Name)
		if err != nil {
			return nil, unclear("offerings[%d]: %v", i, err)
		}
		all = append(all, one)
	}
	driver.SortOfferings(all)
	return all, nil
}

// Create passes the request on, with the first-boot scripts or user data in the form that the program requires.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	if len(r.Candidates) == 0 {
		return driver.Instance{}, driver.Candidate{}, drover.Errorf(drover.KindInvalid, "create instance %s: no candidates", r.Name)
	}
	var said created
	if err := c.call(ctx, "create", c.createArgs(r), &said); err != nil {
		return driver.Instance{}, driver.Candidate{}, err
	}
	in, err := said.Instance.check()
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, unclear("create: %v", err)
	}
	taken := in.Candidate()
	if !slices.ContainsFunc(r.Candidates, taken.Same) {
		return driver.Instance{}, driver.Candidate{}, unclear("create: the driver program created %s in %s, %s, which is not one of the candidates", taken.ProviderType, taken.Zone, taken.Market)
	}
	return in, taken, nil
}

func (c *cloud) createArgs(r driver.CreateRequest) createArgs {
	args := createArgs{Name: r.Name, Disk: r.Disk, Tags: r.Tags, Template: r.Template, PublicKey: r.PublicKey}
	for _, o := range r.Candidates {
		args.Candidates = append(args.Candidates, driverCandidate{o.ProviderType, o.Zone, o.Market, o.Arch, o.Image})
	}
	if c.can.HostKeys == driver.HostKeysPlanted {
		args.HostKey = r.HostKey.Reveal()
	} else {
		r.HostKey = drover.Secret{}
	}
	if c.can.Init == driver.InitCloud {
		args.UserData = kit.UserData(r).Reveal()
		return args
	}
	for _, script := range kit.Scripts(r) {
		args.Scripts = append(args.Scripts, script.Reveal())
	}
	return args
}

// List returns the program's list. One invalid instance makes the whole list an error, since the rest would be a
// shorter list.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	if tags == nil {
		tags = map[string]string{}
	}
	var said listed
	if err := c.call(ctx, "list", listArgs{tags}, &said); err != nil {
		return nil, err
	}
	if said.Instances == nil {
		return nil, unclear("list: the reply has no instances key; if there are no instances, it must be an empty list")
	}
	all := []driver.Instance{}
	for _, i := range *said.Instances {
		in, err := i.check()
		if err != nil {
			return nil, unclear("list: %v", err)
		}
		all = append(all, in)
	}
	return all, nil
}

// Describe calls the program to describe one instance.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	var said described
	if err := c.call(ctx, callDescribe, instanceArgs{ID: id}, &said); err != nil {
		return driver.Instance{}, err
	}
	switch {
	case said.Instance == nil && said.Ended != nil:
		return driver.Instance{Ended: timeOf(said.Ended)}, drover.Errorf(drover.KindNotFound, "describe: instance %.80q has ended", id)
	case said.Instance == nil:
		return driver.Instance{}, unclear("describe: the reply has neither an instance nor an error of kind not_found")
	}
	in, err := said.Instance.check()
	if err == nil && in.ID != id {
		err = fmt.Errorf("the program was asked about %.80q but described %.80q", id, in.ID)
	}
	if err != nil {
		return driver.Instance{}, unclear("describe: %v", err)
	}
	return in, nil
}

// SetTags replaces all tags.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	return c.call(ctx, "set_tags", instanceArgs{ID: id, Tags: tags}, nil)
}

// Destroy ends an instance. It succeeds if there is none, whether or not the program reports that.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.call(ctx, "destroy", instanceArgs{ID: id}, nil)
	if err != nil && ctx.Err() == nil && drover.KindOf(err) == drover.KindNotFound {
		return nil
	}
	return err
}

// VerifyHostKey calls the program, if it supports that. A program may once request the output of a command on the
// instance.
func (c *cloud) VerifyHostKey(ctx context.Context, in driver.Instance, key, output []byte) error {
	if !slices.Contains(c.calls, callVerify) {
		return drover.Errorf(drover.KindUnsupported, "the driver program of cloud %s does not verify host keys", c.o.Name)
	}
	args := instanceArgs{ID: in.ID, Key: base64.StdEncoding.EncodeToString(key)}
	if output != nil {
		args.Output = new(strings.ToValidUTF8(string(output), "\uFFFD"))
	}
	var said verified
	if err := c.call(ctx, callVerify, args, &said); err != nil {
		return err
	}
	switch {
	case said.Run == "":
		return nil
	case output != nil:
		return unclear("verify_host_key: the driver program asked for a second command")
	}
	return &driver.RunFirst{Command: said.Run}
}

// Start starts a stopped instance.
func (c *cloud) Start(ctx context.Context, id string) error {
	return c.call(ctx, "start", instanceArgs{ID: id}, nil)
}

// Stop stops an instance.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return c.call(ctx, "stop", instanceArgs{ID: id}, nil)
}

// GrowDisk enlarges an instance's root volume.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	return c.call(ctx, "grow_disk", instanceArgs{ID: id, Disk: size}, nil)
}

// Attribute reads a text of the cloud's own metadata through the program.
func (c *cloud) Attribute(ctx context.Context, name string) (string, error) {
	if !slices.Contains(c.calls, callAttribute) {
		return "", drover.Errorf(drover.KindUnsupported, "the driver program of cloud %s does not support attributes", c.o.Name)
	}
	var said attribute
	if err := c.call(ctx, callAttribute, attributeArgs{name}, &said); err != nil {
		return "", err
	}
	if said.Value == nil {
		return "", unclear("attribute: the reply has neither a value nor an error of kind not_found")
	}
	return *said.Value, nil
}

// FindImages calls the program to resolve a reference. If the program cannot, the reference is the id.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	if !slices.Contains(c.calls, callImages) {
		return []driver.Image{{ID: ref, Name: ref}}, nil
	}
	var said pictured
	if err := c.call(ctx, callImages, imageArgs{ref, arch}, &said); err != nil {
		return nil, err
	}
	if said.Images == nil {
		return nil, unclear("images: the list is missing")
	}
	var all []driver.Image
	for _, i := range *said.Images {
		if err := checkText("id", i.ID); err != nil || i.ID == "" {
			return nil, unclear("images: invalid id %.40q", i.ID)
		}
		all = append(all, driver.Image{ID: i.ID, Name: i.Name, Arch: i.Arch, Created: timeOf(i.Created)})
	}
	return all, nil
}

// Leftovers lists leftovers through the program, if it supports that.
func (c *cloud) Leftovers(ctx context.Context, _ string) ([]driver.Leftover, error) {
	if !slices.Contains(c.calls, callStrays) {
		return nil, nil
	}
	var said leftovers
	if err := c.call(ctx, callStrays, nil, &said); err != nil {
		return nil, err
	}
	if said.Leftovers == nil {
		return nil, unclear("strays: the list is missing")
	}
	var all []driver.Leftover
	for _, s := range *said.Leftovers {
		if err := checkText("id", s.ID); err != nil || s.ID == "" || checkText("kind", s.Kind) != nil || checkTags(s.Tags) != nil {
			return nil, unclear("strays: %.40q of kind %.40q is not valid", s.ID, s.Kind)
		}
		all = append(all, driver.Leftover{Kind: s.Kind, ID: s.ID, Tags: s.Tags, Created: timeOf(s.Created), Shared: s.Shared})
	}
	return all, nil
}

// Remove removes a leftover, which the protocol calls a stray.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	said := stray{Kind: l.Kind, ID: l.ID, Tags: l.Tags, Shared: l.Shared}
	if l.Created != 0 {
		at := l.Created.Std().UTC().Truncate(time.Second)
		said.Created = &at
	}
	return c.call(ctx, "remove", said, nil)
}
