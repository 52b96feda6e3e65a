package digitalocean

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"

	"github.com/digitalocean/godo"
)

const perPage = 200

// pages reads a list to its end.
func pages[T any](page func(*godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	return kit.CollectNumbered(func(n int) ([]T, int, error) {
		some, answer, err := page(&godo.ListOptions{Page: n, PerPage: perPage})
		if err != nil {
			return nil, 0, err
		}
		last, err := lastPage(answer)
		return some, last, err
	})
}

// lastPage is the number of the last page, as every other page tells it; 1 if this one is the last.
func lastPage(answer *godo.Response) (int, error) {
	if answer.Links == nil || answer.Links.Pages == nil || answer.Links.Pages.Last == "" {
		return 1, nil
	}
	u, err := url.Parse(answer.Links.Pages.Last)
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "the last page has no address: %v", err)
	}
	n, err := strconv.Atoi(u.Query().Get("page"))
	if err != nil || n < 1 {
		return 0, drover.Errorf(drover.KindTransient, "the list has page %q as its last", u.Query().Get("page"))
	}
	return n, nil
}

// List returns the instances that bear the tags, and maybe others. Those with GPUs are in a list of their own, which knows no tags.
func (c *cloud) List(ctx context.Context, tags map[string]string) (all []driver.Instance, err error) {
	// The first page, all of them, and those with GPUs: as many as there were the last time.
	if ctx, err = c.door.prepay(ctx, 2+int(c.lastPage.Load())); err != nil {
		return nil, errs.Classify("listing Droplets", err)
	}
	last := 0
	defer func() { c.lastPage.Store(int32(last)) }()
	droplets, err := pages(func(o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		if o.Page > 1 {
			last = max(last, o.Page)
		}
		if fleet := tags[driver.TagFleet]; fleet != "" {
			return c.api.Droplets.ListByTag(ctx, fleetWord(fleet), o)
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
	doing := "describing " + id
	n, ok := number(id)
	if !ok {
		return driver.Instance{}, drover.Errorf(drover.KindNotFound, "%s: there is no such Droplet", doing)
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	switch {
	case err != nil:
		return driver.Instance{}, errs.Classify(doing, err)
	case d == nil:
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "%s: the answer has no Droplet", doing)
	case d.Status == archived:
		return driver.Instance{}, drover.Errorf(drover.KindNotFound, "%s: it is archived", doing)
	}
	return instance(*d), nil
}

func (c *cloud) withGPUs(ctx context.Context) ([]godo.Droplet, error) {
	all, err := pages(func(o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return c.api.Droplets.ListWithGPUs(ctx, o)
	})
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
		Tags:         tagsOf(d.Tags),
		ProviderType: d.SizeSlug,
		Market:       drover.OnDemand,
		State:        states[d.Status],
		Addresses:    driver.Addresses{User: "root"},
	}
	if in.State == "" {
		in.State = driver.Pending
	}
	if d.Region != nil {
		in.Zone = d.Region.Slug
	}
	in.Addresses.Public, _ = d.PublicIPv4() // its error says that there is none yet
	in.Addresses.Private, _ = d.PrivateIPv4()
	if t, err := time.Parse(time.RFC3339, d.Created); err == nil {
		in.Created = drover.TimeOf(t)
	}
	return in
}
