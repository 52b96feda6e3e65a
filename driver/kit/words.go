package kit

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/driver"
)

// Words writes tags in a cloud whose tags are plain words that belong to the account and outlive the instances. A tag
// is PREFIX:FLEET:KEY:VALUE, followed by the time in seconds if its value is unique to one instance; the fleet's own
// tag is PREFIX:FLEET. Other characters are escaped, so each word identifies its fleet unambiguously.
type Words struct {
	Prefix string
	Max    int // characters in a word
	Mark   byte
	Plain  func(c byte) bool
	Single []string // keys whose values are unique to one instance
}

// Word is a parsed word.
type Word struct {
	Fleet, Key, Value string
	At                drover.Time // 0 if the word has none
}

// Escape writes a text in plain characters.
func (w Words) Escape(text string) string { return Escaped(text, w.Mark, w.Plain) }

// OfFleet returns the word that all instances of a fleet have.
func (w Words) OfFleet(fleet string) string { return w.Prefix + ":" + w.Escape(fleet) }

// Write returns tags as sorted words.
func (w Words) Write(tags map[string]string, now time.Time) (all []string, err error) {
	for key, value := range tags {
		word := w.word(tags[driver.TagFleet], key, value, now)
		if len(word) > w.Max {
			return nil, drover.Errorf(drover.KindInvalid, "the tag %s is too long: it has %d characters when escaped, and this cloud allows %d", key, len(word), w.Max)
		}
		all = append(all, word)
	}
	slices.Sort(all)
	return all, nil
}

func (w Words) word(fleet, key, value string, now time.Time) string {
	if key == driver.TagFleet {
		return w.OfFleet(value)
	}
	word := w.OfFleet(fleet) + ":" + w.Escape(key) + ":" + w.Escape(value)
	if slices.Contains(w.Single, key) {
		word += ":" + strconv.FormatInt(now.Unix(), 10)
	}
	return word
}

// Parse parses a word; ours is false if Drover did not write it.
func (w Words) Parse(word string) (says Word, ours bool) {
	parts := strings.Split(word, ":")
	if len(parts) < 2 || len(parts) > 5 || len(parts) == 3 || parts[0] != w.Prefix {
		return says, false
	}
	for i, part := range parts[1:] {
		text, ok := w.unescape(part)
		if !ok {
			return says, false
		}
		parts[i+1] = text
	}
	says.Fleet = parts[1]
	if len(parts) == 2 {
		says.Key, says.Value = driver.TagFleet, says.Fleet
		return says, true
	}
	says.Key, says.Value = parts[2], parts[3]
	if len(parts) == 5 {
		second, err := strconv.ParseInt(parts[4], 10, 64)
		if err != nil {
			return says, false
		}
		says.At = drover.TimeOf(time.Unix(second, 0))
	}
	return says, true
}

// unescape reverses Escape.
func (w Words) unescape(word string) (text string, ours bool) {
	for _, c := range []byte(word) {
		if !w.Plain(c) && c != w.Mark {
			return "", false
		}
	}
	return Unescaped(word, w.Mark)
}

// Read returns the tags in words. While tags are being replaced, a key may have two words; then the later one counts.
func (w Words) Read(words []string) map[string]string {
	tags, at := map[string]string{}, map[string]drover.Time{}
	for _, word := range slices.Sorted(slices.Values(words)) {
		if says, ours := w.Parse(word); ours && says.At >= at[says.Key] {
			tags[says.Key], at[says.Key] = says.Value, says.At
		}
	}
	return tags
}

// Change returns which words to add and which to remove to get from the present words to the wanted ones. Times do not
// matter.
func (w Words) Change(there, wanted []string) (add, remove []string) {
	among := func(all []string, word string) bool {
		says, _ := w.Parse(word)
		return slices.ContainsFunc(all, func(other string) bool {
			o, ours := w.Parse(other)
			return ours && o.Fleet == says.Fleet && o.Key == says.Key && o.Value == says.Value
		})
	}
	for _, word := range wanted {
		if !among(there, word) {
			add = append(add, word)
		}
	}
	for _, word := range there {
		if _, ours := w.Parse(word); ours && !among(wanted, word) {
			remove = append(remove, word)
		}
	}
	return add, remove
}
