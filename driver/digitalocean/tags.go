package digitalocean

import (
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
