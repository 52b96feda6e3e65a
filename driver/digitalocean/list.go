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

// List returns the instances with the tags, except archived ones, which have ended. Instances with GPUs are in a separate
// list, which cannot be filtered by tag.
func (c *cloud) List(ctx context.Context, tags map[string]string) (all []driver.Instance, err error) {
	// Reserve calls for the first page, for as many pages as last time, and for the list of instances with GPUs.
	if ctx, err = c.gate.Prepay(ctx, anyRequest, 2+int(c.lastPage.Load())); err != nil {
		return nil, errs.Classify("list Droplets", err)
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
		return nil, errs.Classify("list Droplets", err)
	}
	gpus, err := c.withGPUs(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range append(droplets, gpus...) {
		if in := instance(d); d.Status != archived && in.Bears(tags) {
			all = append(all, in)
		}
	}
	return all, nil
}

// Describe reads one Droplet. An archived one has ended.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	d, err := c.droplet(ctx, id)
	if err == nil && d.Status == archived {
		err = drover.Errorf(drover.KindNotFound, "it is archived")
	}
	if err != nil {
		return driver.Instance{}, errs.Classify("describe instance "+id, err)
	}
	return instance(*d), nil
}

// droplet returns the Droplet with an id.
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
	return all, errs.Classify("list Droplets with GPUs", err)
}

// states translates DigitalOcean's states.
var states = map[string]driver.State{
	"new":    driver.Pending,
	"active": driver.Running,
	"off":    driver.Stopped,
	archived: driver.Stopped,
}

// archived is the status of a Droplet that has ended.
const archived = "archive"

// instance translates a Droplet.
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
	in.Addresses.Public, _ = d.PublicIPv4() // an error means that there is none yet
	in.Addresses.Private, _ = d.PrivateIPv4()
	return in
}

// number returns an id as DigitalOcean's number.
func number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && n > 0
}

// SetTags replaces a Droplet's Drover tags; others stay. It adds new tags before it removes old ones, so that the
// Droplet always has some.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	doing := "tag instance " + id
	wanted, err := words.Write(tags, time.Now())
	if err != nil {
		return err
	}
	ctx, err = c.gate.Prepay(ctx, anyRequest, 3) // one call to read, one to add a word and one to remove one
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

// prefix is the prefix of all of Drover's words.
const prefix = "drover"

// words is the encoding of tags: in lower case, since DigitalOcean considers words that differ only in case equal.
var words = kit.Words{
	Prefix: prefix, Max: 255, Mark: '_', Single: []string{driver.TagName, driver.TagHostKey},
	Plain: func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' },
}

func onDroplet(id string) []godo.Resource {
	return []godo.Resource{{ID: id, Type: godo.DropletResourceType}}
}

// tag adds a word to a Droplet; it first creates the word if it is new.
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

// untag removes a word from a Droplet, and deletes a word that no other Droplet can have.
func (c *cloud) untag(ctx context.Context, id, word string) (err error) {
	if w, _ := words.Parse(word); w.At != 0 {
		_, err = c.api.Tags.Delete(ctx, word)
	} else {
		_, err = c.api.Tags.UntagResources(ctx, word, &godo.UntagResourcesRequest{Resources: onDroplet(id)})
	}
	return err
}
