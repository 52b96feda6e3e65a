package hetzner

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"drover/driver/kit"
)

// labels are how tags are written. A label's value has at most 63 characters, letters, digits, dashes, underscores and dots, the first and the last of
// them a letter or digit: see "Labels" in the API's reference.
var labels = kit.Labels{Max: 63, Mark: 'Z', Joint: ".", Plain: func(c byte, edge bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || !edge && (c == '-' || c == '_' || c == '.')
}}

// labelRules are what Hetzner takes as a label's key, without a prefix, and as its value.
var labelRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`),
	Value: regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?$`),
	Hint:  "both have up to 63 letters, digits, dashes, underscores and dots, a letter or digit first and last",
}

// labelsOf are those that stand for tags, and what the configuration puts on all that is made.
func (c *cloud) labelsOf(tags map[string]string) map[string]string {
	return kit.MergeTags(c.config.Labels, labels.Write(tags))
}

// selector asks for what bears all these tags.
func selector(tags map[string]string) string {
	var all []string
	written := labels.Write(tags)
	for _, key := range slices.Sorted(maps.Keys(written)) {
		all = append(all, key+"="+written[key])
	}
	return strings.Join(all, ",")
}
