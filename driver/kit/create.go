package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// MergeTags are tags of several origins; of a key that occurs more than once, the last.
func MergeTags(all ...map[string]string) map[string]string {
	tags := map[string]string{}
	for _, some := range all {
		maps.Copy(tags, some)
	}
	return tags
}

// instanceName is what an instance can be called in every cloud, but for how long.
var instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// CheckRequest refuses what could never become an instance: one that has no candidates, or a name that is longer than that or has other characters.
func CheckRequest(r driver.CreateRequest, longest int) error {
	switch {
	case len(r.Name) > longest || !instanceName.MatchString(r.Name):
		return drover.Errorf(drover.KindInvalid, "a name has letters, digits and dashes, at most %d", longest)
	case len(r.Candidates) == 0:
		return drover.Errorf(drover.KindInvalid, "no candidates")
	}
	return nil
}

// CheckImage refuses a candidate that has no image, and says how one is configured: such as this.
func CheckImage(c driver.Candidate, such string) error {
	if c.Image != "" {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "no image is configured for %s", cmp.Or(string(c.Arch), c.ProviderType)).
		WithHint("write image: in the cloud's configuration, such as %s", such)
}

// LimitedUserData is UserData, which a cloud takes up to so many bytes of.
func LimitedUserData(r driver.CreateRequest, most int) (string, error) {
	text := UserData(r).Reveal()
	if len(text) > most {
		return "", drover.Errorf(drover.KindInvalid, "the user data has %d bytes, and this cloud takes %d", len(text), most)
	}
	return text, nil
}

// DecodeTemplate reads a raw template that is JSON; what there is no field for is KindInvalid, with a hint that says what there is.
func DecodeTemplate(raw string, into any, hint string) error {
	if raw == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return drover.Errorf(drover.KindInvalid, "read the template: %v", err).WithHint("%s", hint)
	}
	return nil
}

// Planted is for a Cloud whose host keys are planted: whoever has the instance's name knows its key, so none is asked for.
type Planted struct{}

// VerifyHostKey cannot tell.
func (Planted) VerifyHostKey(_ context.Context, _ driver.Instance, _, _ []byte) error {
	return drover.Errorf(drover.KindUnsupported, "host keys are planted, not asked for")
}

// matters orders what candidates were refused for by how much it matters: what is wrong with all of them first, and a lack of capacity before a
// lack of quota, since a quota speaks only of the types that it holds for.
var matters = []drover.ErrorKind{
	drover.KindAuthentication, drover.KindRateLimit, drover.KindTransient, drover.KindCapacity, drover.KindQuota, drover.KindUnsupported, drover.KindInvalid,
}

// TryNext reports whether an error says only that this candidate is not to be had: the next one may be.
func TryNext(err error) bool {
	switch drover.KindOf(err) {
	case drover.KindCapacity, drover.KindQuota, drover.KindUnsupported:
		return true
	}
	return false
}

// MostSevere is one error for candidates that were refused, at least one: that which matters most, with the words of all. Of candidates that were
// refused for different reasons, of which a lack of capacity is one, none is to be had: that is a lack of capacity of each.
func MostSevere(all []*drover.Error) *drover.Error {
	e := *slices.MinFunc(all, func(a, b *drover.Error) int {
		return cmp.Compare(slices.Index(matters, a.Kind), slices.Index(matters, b.Kind))
	})
	var words []string
	differ := false
	for _, other := range all {
		if !slices.Contains(words, other.Message) {
			words = append(words, other.Message)
		}
		differ = differ || other.Kind != e.Kind || other.Scope != e.Scope
		if other.Market != e.Market {
			e.Market = ""
		}
	}
	if differ && e.Scope != "" {
		e.Scope = drover.ScopeType // no wider than what was tried
	}
	e.Message = strings.Join(words, "; ")
	return &e
}

// Fingerprint is that of a key in authorized_keys form, in MD5 as clouds know login keys by.
func Fingerprint(authorized string) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "read the key that may log in: %v", err)
	}
	return ssh.FingerprintLegacyMD5(key), nil
}
