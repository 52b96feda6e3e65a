package digitalocean

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List returns the instances that bear the tags, and maybe others. Those with GPUs are in a list of their own, which
// knows no tags.
func (c *cloud) List(ctx context.Context, tags map[string]string) (all []driver.Instance, err error) {
	// The first page, all of them, and those with GPUs: as many as there were the last time.
	if ctx, err = c.gate.Prepay(ctx, anyRequest, 2+int(c.lastPage.Load())); err != nil {
		return nil, errs.Classify("listing Droplets", err)
	}
	last := 0
	defer func() { c.lastPage.Store(int32(last)) }()
	droplets, err := pages(ctx, func(ctx context.Context, o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		if o.Page > 1 {
			last = max(last, o.Page)
		}
		if fleet := tags[driver.TagFleet]; fleet != "" {
			return c.api.Droplets.ListByTag(ctx, words.OfFleet(fleet), o)
		}
		return c.api.Droplets.List(ctx, o)
	})
	if err != nil {
		return nil, errs.Classify("listing Droplets", err)
	}
	gpus, err := c.withGPUs(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range append(droplets, gpus...) {
		if in := instance(d); in.Bears(tags) {
			all = append(all, in)
		}
	}
	return all, nil
}

// Describe asks for one Droplet. One that is archived exists in name only.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	d, err := c.droplet(ctx, id)
	if err == nil && d.Status == archived {
		err = drover.Errorf(drover.KindNotFound, "it is archived")
	}
	if err != nil {
		return driver.Instance{}, errs.Classify("describing "+id, err)
	}
	return instance(*d), nil
}

// droplet is that of an id.
func (c *cloud) droplet(ctx context.Context, id string) (*godo.Droplet, error) {
	n, ok := number(id)
	if !ok {
		return nil, drover.Errorf(drover.KindNotFound, "there is no such Droplet")
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	if err == nil && d == nil {
		err = drover.Errorf(drover.KindTransient, "the response contains no Droplet")
	}
	return d, err
}

func (c *cloud) withGPUs(ctx context.Context) ([]godo.Droplet, error) {
	all, err := pages(ctx, c.api.Droplets.ListWithGPUs)
	return all, errs.Classify("listing Droplets with GPUs", err)
}

// states are DigitalOcean's words.
var states = map[string]driver.State{
	"new":    driver.Pending,
	"active": driver.Running,
	"off":    driver.Stopped,
	archived: driver.Stopped,
}

// archived is the status of a Droplet that is over.
const archived = "archive"

// instance is a Droplet as an instance.
func instance(d godo.Droplet) driver.Instance {
	in := driver.Instance{
		ID:           strconv.Itoa(d.ID),
		Tags:         words.Read(d.Tags),
		ProviderType: d.SizeSlug,
		Market:       drover.OnDemand,
		Zone:         kit.Value(d.Region).Slug,
		State:        cmp.Or(states[d.Status], driver.Pending),
		Addresses:    driver.Addresses{User: "root"},
		Created:      kit.ReadTime(d.Created),
	}
	in.Addresses.Public, _ = d.PublicIPv4() // its error says that there is none yet
	in.Addresses.Private, _ = d.PrivateIPv4()
	return in
}

// number is an id as DigitalOcean has it.
func number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && n > 0
}

// SetTags replaces Drover's tags of a Droplet; others' stay. New ones come before old ones go, so that it is never
// without.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	doing := "tagging " + id
	wanted, err := words.Write(tags, time.Now())
	if err != nil {
		return err
	}
	ctx, err = c.gate.Prepay(ctx, anyRequest, 3) // to look, to add one word and to remove one
	if err != nil {
		return errs.Classify(doing, err)
	}
	d, err := c.droplet(ctx, id)
	if err != nil {
		return errs.Classify(doing, err)
	}
	add, remove := words.Change(d.Tags, wanted)
	for _, word := range add {
		if err := c.tag(ctx, id, word); err != nil {
			return errs.Classify(doing, err)
		}
	}
	for _, word := range remove {
		if err := errs.Gone(doing, c.untag(ctx, id, word)); err != nil {
			return err
		}
	}
	return nil
}

// prefix begins every word of ours.
const prefix = "drover"

// words are how tags are written: in small letters, since DigitalOcean holds words that differ by case alone for the
// same.
var words = kit.Words{
	Prefix: prefix, Max: 255, Mark: '_', Single: []string{driver.TagName, driver.TagHostKey},
	Plain: func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' },
}

func onDroplet(id string) []godo.Resource {
	return []godo.Resource{{ID: id, Type: godo.DropletResourceType}}
}

// tag has a Droplet bear a word, which is made first if it is new.
func (c *cloud) tag(ctx context.Context, id, word string) error {
	bearer := &godo.TagResourcesRequest{Resources: onDroplet(id)}
	_, err := c.api.Tags.TagResources(ctx, word, bearer)
	if errs.KindOf(err) == drover.KindNotFound {
		if _, _, err = c.api.Tags.Create(ctx, &godo.TagCreateRequest{Name: word}); err == nil {
			_, err = c.api.Tags.TagResources(ctx, word, bearer)
		}
	}
	return err
}

// untag takes a word from a Droplet. One that no other may bear goes altogether.
func (c *cloud) untag(ctx context.Context, id, word string) (err error) {
	if w, _ := words.Parse(word); w.At != 0 {
		_, err = c.api.Tags.Delete(ctx, word)
	} else {
		_, err = c.api.Tags.UntagResources(ctx, word, &godo.UntagResourcesRequest{Resources: onDroplet(id)})
	}
	return err
}
