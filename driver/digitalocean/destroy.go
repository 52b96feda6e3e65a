package digitalocean

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/driver"

	"github.com/digitalocean/godo"
)

// Destroy deletes a Droplet; its disk and its addresses go with it, and then the words that no other bears. What is not done of the latter when
// it is interrupted, Leftovers finds.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	doing := "destroying " + id
	n, ok := number(id)
	if !ok {
		return nil // none ever had this id
	}
	ctx, err := c.door.prepay(ctx, 2+len(single))
	if err != nil {
		return errs.Classify(doing, err)
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	if err == nil {
		_, err = c.api.Droplets.Delete(ctx, n)
	}
	if err != nil || d == nil {
		return errs.Gone(doing, err)
	}
	for _, word := range d.Tags {
		if w, ours := tagOf(word); ours && w.at != 0 {
			_, err := c.api.Tags.Delete(ctx, word)
			if err = errs.Gone(doing, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// number is an id as DigitalOcean has it.
func number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && n > 0
}

// SetTags replaces Drover's tags of a Droplet; others' stay. New ones come before old ones go, so that it is never without.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	n, ok := number(id)
	if !ok {
		return drover.Errorf(drover.KindNotFound, "tagging %s: there is no such Droplet", id)
	}
	ctx, err := c.door.prepay(ctx, 3) // to look, to add one word and to remove one
	if err != nil {
		return errs.Classify("tagging "+id, err)
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	if err != nil {
		return errs.Classify("tagging "+id, err)
	}
	wanted, err := words(tags, time.Now())
	if err != nil {
		return err
	}
	add, remove := change(d.Tags, wanted)
	for _, word := range add {
		if err := c.tag(ctx, id, word); err != nil {
			return errs.Classify("tagging "+id, err)
		}
	}
	for _, word := range remove {
		if err := c.untag(ctx, id, word); err != nil {
			return errs.Classify("tagging "+id, err)
		}
	}
	return nil
}

// change is what to add to the words that there are, and which of Drover's to remove, for there to be those that are wanted. When they were
// written makes no difference.
func change(there, wanted []string) (add, remove []string) {
	among := func(all []string, word string) bool {
		w, _ := tagOf(word)
		return slices.ContainsFunc(all, func(other string) bool {
			o, ours := tagOf(other)
			return ours && o.fleet == w.fleet && o.key == w.key && o.value == w.value
		})
	}
	for _, word := range wanted {
		if !among(there, word) {
			add = append(add, word)
		}
	}
	for _, word := range there {
		if _, ours := tagOf(word); ours && !among(wanted, word) {
			remove = append(remove, word)
		}
	}
	return add, remove
}

func onDroplet(id string) []godo.Resource {
	return []godo.Resource{{ID: id, Type: godo.DropletResourceType}}
}

// tag has a Droplet bear a word, which is made first if it is new.
func (c *cloud) tag(ctx context.Context, id, word string) error {
	answer, err := c.api.Tags.TagResources(ctx, word, &godo.TagResourcesRequest{Resources: onDroplet(id)})
	if err == nil || answer == nil || answer.StatusCode != http.StatusNotFound {
		return err
	}
	if _, _, err := c.api.Tags.Create(ctx, &godo.TagCreateRequest{Name: word}); err != nil {
		return err
	}
	_, err = c.api.Tags.TagResources(ctx, word, &godo.TagResourcesRequest{Resources: onDroplet(id)})
	return err
}

// untag takes a word from a Droplet. One that no other may bear goes altogether.
func (c *cloud) untag(ctx context.Context, id, word string) error {
	var answer *godo.Response
	var err error
	if w, _ := tagOf(word); w.at != 0 {
		answer, err = c.api.Tags.Delete(ctx, word)
	} else {
		answer, err = c.api.Tags.UntagResources(ctx, word, &godo.UntagResourcesRequest{Resources: onDroplet(id)})
	}
	if answer != nil && answer.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}

var _ driver.Cloud = (*cloud)(nil)
