package gce

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLabels checks that tags are either refused or become labels that Google accepts and that decode to the same tags,
// and that any labels can be decoded.
func FuzzLabels(f *testing.F) {
	for _, seed := range [][3]string{
		{"drover-fleet", "lab", ""}, {"drover-host-key", "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", "x--b"}, {"a", "x--", "y"}, {"a--1", "", "x--a"}, {"", "\xff", "x--aa"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, key, value, other string) {
		tags := map[string]string{key: value, "other": other}
		written, err := labelsOf(tags)
		if err == nil {
			for k, v := range written {
				if !labelRules.Key.MatchString(k) || !labelRules.Value.MatchString(v) {
					t.Errorf("%q: %q is not a label", k, v)
				}
			}
			if diff := cmp.Diff(tags, labels.Read(written)); diff != "" {
				t.Error(diff)
			}
		}
		labels.Read(map[string]string{key: value, key + labels.Joint + "2": other, "other": other})
	})
}
