package gce

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// labels are how tags are written. A label's value is short and has small letters, digits, dashes and underscores: see "Requirements for labels" in
// Google's guide to Compute Engine.
var labels = kit.Labels{Max: 63, Mark: '_', Joint: "--", Plain: func(c byte, _ bool) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
}}

// labelRules are what Google takes as a label's key and as its value.
var labelRules = kit.TagRules{
	Key:   regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`),
	Value: regexp.MustCompile(`^[a-z0-9_-]{0,63}$`),
	Hint:  "both have up to 63 small letters, digits, dashes and underscores, and a key begins with a letter",
}

// maxLabels is how many a resource has.
const maxLabels = 64

// labelsOf are tags as labels. One whose key cannot be a label's is KindInvalid.
func labelsOf(tags map[string]string) (map[string]string, error) {
	all := labels.Write(tags)
	for key := range tags {
		if !labelRules.Key.MatchString(key) || strings.Contains(key, labels.Joint) {
			return nil, drover.Errorf(drover.KindInvalid, "tag %.80q: its key cannot be a label's", key)
		}
	}
	if len(all) > maxLabels {
		return nil, drover.Errorf(drover.KindInvalid, "%d labels, and Google takes %d", len(all), maxLabels)
	}
	return all, nil
}

// filterOf finds what bears all the tags; empty for none.
func filterOf(tags map[string]string) (string, error) {
	written, err := labelsOf(tags)
	var all []string
	for _, key := range slices.Sorted(maps.Keys(written)) {
		all = append(all, fmt.Sprintf("(labels.%s = %q)", key, written[key]))
	}
	return strings.Join(all, " "), err
}

// withOwn adds what the configuration puts on all that is made.
func (c *cloud) withOwn(labels map[string]string) map[string]string {
	return kit.MergeTags(c.config.Labels, labels)
}

// fleetFilter finds what is a fleet's.
func fleetFilter(fleet string) (string, error) {
	return filterOf(map[string]string{driver.TagFleet: fleet})
}
