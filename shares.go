package drover

import (
	"fmt"
	"regexp"
	"strings"
)

// Shares divide the fleet among work of one priority: the user or label value with the least use for its weight is
// served first.
type Shares struct {
	By      ShareBy        `json:"by,omitempty" yaml:"by,required" doc:"who gets a share; user: each user; label:NAME: each value of the label"`
	Weights map[string]int `json:"weights,omitempty" yaml:"weights" min:"1" max:"1000000" doc:"the weights of individual users or label values"`
	Default int            `json:"default,omitempty" yaml:"default" min:"1" max:"1000000" doc:"the weight of each user or label value not in weights; default: 1"`
}

// ShareBy is who has shares: ShareByUser, or label:NAME for the values of a label. Empty: there are no shares.
type ShareBy string

// ShareByUser gives each user a share.
const ShareByUser ShareBy = "user"

var shareLabel = regexp.MustCompile(`^label:[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)

// UnmarshalText parses a ShareBy.
func (b *ShareBy) UnmarshalText(text []byte) error {
	if s := string(text); s != string(ShareByUser) && !shareLabel.MatchString(s) {
		return fmt.Errorf("%q is neither user nor label:NAME", s)
	}
	*b = ShareBy(text)
	return nil
}

// Label returns the name of the label whose values have shares; empty if users have them.
func (b ShareBy) Label() string {
	name, _ := strings.CutPrefix(string(b), "label:")
	if name == string(b) {
		return ""
	}
	return name
}

// Weight returns the weight of a user or label value.
func (s Shares) Weight(name string) int {
	if w := s.Weights[name]; w > 0 {
		return w
	}
	return max(1, s.Default)
}
