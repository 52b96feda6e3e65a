package hetzner

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drover"
	"drover/driver/kit"
)

// A label's value has at most 63 characters, letters, digits, dashes, underscores and dots, the first and the last of them a letter or digit
// (see "Labels" in the API's reference). A tag's value is written so that it is one: any other character, a Z, and whatever would be first or last and may
// not, is a Z and its two hexadecimal digits; what is too long goes on in a second label, whose key has .2 behind, and so on.
const (
	maxLabel = 63
	mark     = 'Z'
)

// labelsOf are the labels that stand for tags.
func labelsOf(tags map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range tags {
		for i, part := range parts(value) {
			labels[partKey(key, i)] = part
		}
	}
	return labels
}

func partKey(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i+1)
}

// parts are the values of a tag's labels: at least one.
func parts(value string) (all []string) {
	var b strings.Builder
	for i := range len(value) {
		// A part may end after any character, so each that is within reach of its end is written as if it did.
		last := i == len(value)-1 || b.Len() >= maxLabel-6
		b.WriteString(written(value[i:i+1], b.Len() == 0 || last))
		if b.Len() > maxLabel-3 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 || len(all) == 0 {
		all = append(all, b.String())
	}
	return all
}

// written is a text that a label may have at its end or only within.
func written(text string, atEnd bool) string {
	return kit.Escaped(text, mark, func(c byte) bool {
		return c != mark && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') || !atEnd && (c == '-' || c == '_' || c == '.')
	})
}

// What Hetzner takes as a label's key, without a prefix, and as its value.
var (
	labelKey   = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`)
	labelValue = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?$`)
)

func checkLabels(labels map[string]string) error {
	for k, v := range labels {
		if !labelKey.MatchString(k) || !labelValue.MatchString(v) || strings.HasPrefix(k, "drover-") {
			return drover.Errorf(drover.KindInvalid, "labels: %.80q: %.80q cannot be one", k, v).
				WithHint("both have up to 63 letters, digits, dashes, underscores and dots, a letter or digit first and last; a key does not begin with drover-")
		}
	}
	return nil
}

// labels are those that stand for tags, and what the configuration puts on all that is made.
func (c *cloud) labels(tags map[string]string) map[string]string {
	return kit.MergeTags(c.config.Labels, labelsOf(tags))
}

// tagsOf are the tags that labels stand for.
func tagsOf(labels map[string]string) map[string]string {
	tags := map[string]string{}
	for key, value := range labels {
		if first, n, ok := cutPart(key); ok && hasPart(labels, first, n-1) {
			continue // read with the first
		}
		tags[key] = unwritten(value)
		for i := 1; ; i++ {
			part, ok := labels[partKey(key, i)]
			if !ok {
				break
			}
			tags[key] += unwritten(part)
		}
	}
	return tags
}

// cutPart cuts the number of a part off a key, if it has one.
func cutPart(key string) (first string, n int, ok bool) {
	at := strings.LastIndexByte(key, '.')
	if at < 0 {
		return key, 0, false
	}
	n, err := strconv.Atoi(key[at+1:])
	return key[:at], n, err == nil && n >= 2
}

func hasPart(labels map[string]string, first string, n int) bool {
	_, ok := labels[partKey(first, n-1)]
	return ok
}

// unwritten is what was written. What we did not write stays as it is.
func unwritten(part string) string {
	if text, ours := kit.Unescaped(part, mark); ours {
		return text
	}
	return part
}

// selector asks for what bears all these tags.
func selector(tags map[string]string) string {
	labels := labelsOf(tags)
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, ",")
}
