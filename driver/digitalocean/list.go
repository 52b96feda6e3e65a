package digitalocean

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List returns the instances that bear the tags, and maybe others. Those with GPUs are in a list of their own, which knows no tags.
func (c *cloud) List(ctx context.Context, tags map[string]string) (all []driver.Instance, err error) {
	// The first page, all of them, and those with GPUs: as many as there were the last time.
	if ctx, err = c.gate.Prepay(ctx, anyRequest, 2+int(c.lastPage.Load())); err != nil {
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

// SetTags replaces Drover's tags of a Droplet; others' stay. New ones come before old ones go, so that it is never without.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	n, ok := number(id)
	if !ok {
		return drover.Errorf(drover.KindNotFound, "tagging %s: there is no such Droplet", id)
	}
	ctx, err := c.gate.Prepay(ctx, anyRequest, 3) // to look, to add one word and to remove one
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

// A tag is written drover:FLEET:KEY:VALUE, and one that no two instances share has the second in which it was written behind. The fleet's own
// is drover:FLEET. What is not a small letter, a digit or a dash is escaped, capitals too: DigitalOcean holds words that differ by case alone
// for the same. So the words of a fleet can be told from those of any other, which they outlive.
const prefix = "drover"

// longest is the longest word that DigitalOcean takes.
const longest = 255

// single are the keys whose values no two instances share.
var single = []string{driver.TagName, driver.TagHostKey}

// fleetWord is the word that all instances of a fleet bear.
func fleetWord(fleet string) string { return prefix + ":" + escaped(fleet) }

// words are tags as DigitalOcean takes them.
func words(tags map[string]string, now time.Time) (all []string, err error) {
	for key, value := range tags {
		w := word(tags[driver.TagFleet], key, value, now)
		if len(w) > longest {
			return nil, drover.Errorf(drover.KindInvalid, "the tag %s is too long: it has %d characters when escaped, and DigitalOcean takes %d", key, len(w), longest)
		}
		all = append(all, w)
	}
	slices.Sort(all)
	return all, nil
}

// word is one tag as DigitalOcean takes it.
func word(fleet, key, value string, now time.Time) string {
	if key == driver.TagFleet {
		return fleetWord(value)
	}
	w := fleetWord(fleet) + ":" + escaped(key) + ":" + escaped(value)
	if slices.Contains(single, key) {
		w += ":" + strconv.FormatInt(now.Unix(), 10)
	}
	return w
}

// written is what a word says.
type written struct {
	fleet, key, value string
	at                drover.Time // 0: it is not said
}

// tagOf reads a word, unless it is not Drover's.
func tagOf(word string) (w written, ours bool) {
	parts := strings.Split(word, ":")
	if len(parts) < 2 || len(parts) > 5 || len(parts) == 3 || parts[0] != prefix {
		return w, false
	}
	for i, part := range parts[1:] {
		text, ok := unescaped(part)
		if !ok {
			return w, false
		}
		parts[i+1] = text
	}
	w.fleet = parts[1]
	if len(parts) == 2 {
		w.key, w.value = driver.TagFleet, w.fleet
		return w, true
	}
	w.key, w.value = parts[2], parts[3]
	if len(parts) == 5 {
		second, err := strconv.ParseInt(parts[4], 10, 64)
		if err != nil {
			return w, false
		}
		w.at = drover.TimeOf(time.Unix(second, 0))
	}
	return w, true
}

// tagsOf are the tags that words say. While tags are being replaced there may be two words of a key: the later counts, or the last.
func tagsOf(words []string) map[string]string {
	tags, at := map[string]string{}, map[string]drover.Time{}
	words = slices.Sorted(slices.Values(words))
	for _, word := range words {
		if w, ours := tagOf(word); ours && w.at >= at[w.key] {
			tags[w.key], at[w.key] = w.value, w.at
		}
	}
	return tags
}

// mark stands before what is escaped.
const mark = '_'

// escaped writes a text in small letters, digits and dashes.
func escaped(text string) string { return kit.Escaped(text, mark, plain) }

func plain(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' }

// unescaped reads what escaped wrote.
func unescaped(word string) (text string, ours bool) {
	for _, c := range []byte(word) {
		if !plain(c) && c != mark {
			return "", false
		}
	}
	return kit.Unescaped(word, mark)
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
