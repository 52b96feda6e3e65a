package gce

import (
	"encoding/base32"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// A label's value is short and has small letters, digits, dashes and underscores: see "Requirements for labels" in Google's guide to Compute
// Engine. A tag whose value is not like that, such as a fingerprint, is written in base 32 behind a mark, and what is too long for one label
// goes on in others: KEY, KEY--1, KEY--2.
const (
	mark      = "x--"
	maxLabel  = 63
	maxLabels = 64 // of a resource
	joint     = "--"
)

var (
	labelValue = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	letters    = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// labelsOf are tags as labels. One whose key cannot be a label's is KindInvalid.
func labelsOf(tags map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if !labelKey.MatchString(key) || strings.Contains(key, joint) {
			return nil, drover.Errorf(drover.KindInvalid, "tag %.80q: its key cannot be a label's", key)
		}
		rest := tags[key]
		if !labelValue.MatchString(rest) || strings.HasPrefix(rest, mark) {
			rest = mark + letters.EncodeToString([]byte(rest))
		}
		all[key] = rest[:min(maxLabel, len(rest))]
		for i := 1; len(rest) > maxLabel; i++ {
			rest = rest[maxLabel:]
			all[key+joint+strconv.Itoa(i)] = rest[:min(maxLabel, len(rest))]
		}
	}
	if len(all) > maxLabels {
		return nil, drover.Errorf(drover.KindInvalid, "%d labels, and Google takes %d", len(all), maxLabels)
	}
	return all, nil
}

// tagsOf are labels as tags. What does not read as labelsOf writes is taken as it is: anybody may label an instance.
func tagsOf(labels map[string]string) map[string]string {
	tags := map[string]string{}
	for key, value := range labels {
		base, number, continues := strings.Cut(key, joint)
		if _, err := strconv.Atoi(number); continues && err == nil && strings.HasPrefix(labels[base], mark) {
			continue
		}
		tags[key] = value
		if text, marked := strings.CutPrefix(value, mark); marked {
			for i := 1; ; i++ {
				more, ok := labels[key+joint+strconv.Itoa(i)]
				if !ok {
					break
				}
				text += more
			}
			if plain, err := letters.DecodeString(text); err == nil {
				tags[key] = string(plain)
			}
		}
	}
	return tags
}

// filterOf finds what bears all the tags; empty for none.
func filterOf(tags map[string]string) (string, error) {
	labels, err := labelsOf(tags)
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, fmt.Sprintf("(labels.%s = %q)", key, labels[key]))
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
