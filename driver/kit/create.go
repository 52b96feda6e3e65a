package kit

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// MergeTags merges tags; for duplicate keys, the last value counts.
func MergeTags(all ...map[string]string) map[string]string {
	tags := map[string]string{}
	for _, some := range all {
		maps.Copy(tags, some)
	}
	return tags
}

// instanceName matches the names that every cloud accepts, apart from their length.
var instanceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// Demands are what a cloud requires of every create call.
type Demands struct {
	Longest  int    // characters in a name
	Image    string // an example of an image, for the hint; empty: candidates need none
	OnDemand bool   // the cloud has no spot market
	UserData int    // the most bytes of UserData; 0: UserData is not used
}

// CheckRequest refuses a request with a bad name, too much user data or no candidates, and a candidate without an image
// or in a market that the cloud does not have.
func CheckRequest(r driver.CreateRequest, d Demands) error {
	switch {
	case len(r.Name) > d.Longest || !instanceName.MatchString(r.Name):
		return drover.Errorf(drover.KindInvalid, "a name may contain only letters, digits and dashes, at most %d in all", d.Longest)
	case len(r.Candidates) == 0:
		return drover.Errorf(drover.KindInvalid, "no candidates")
	}
	for _, c := range r.Candidates {
		switch {
		case d.OnDemand && c.Market != drover.OnDemand:
			return drover.Errorf(drover.KindUnsupported, "this cloud has no market %q", c.Market)
		case d.Image != "" && c.Image == "":
			return drover.Errorf(drover.KindInvalid, "no image is configured for %s", cmp.Or(string(c.Arch), c.ProviderType)).
				WithHint("set image in the cloud's configuration, for example to %s", d.Image)
		}
	}
	if d.UserData == 0 {
		return nil
	}
	if text := UserData(r).Reveal(); len(text) > d.UserData {
		return drover.Errorf(drover.KindInvalid, "the user data is %d bytes long, more than this cloud's limit of %d", len(text), d.UserData)
	}
	return nil
}

// Create implements a driver's Create: it checks the request against the demands and makes the instance. An error
// concerns the market of the first candidate.
func (e *Errors) Create(
	ctx context.Context, r driver.CreateRequest, d Demands, create func(context.Context, driver.CreateRequest) (driver.Instance, error),
) (in driver.Instance, _ driver.Candidate, err error) {
	market := e.Market
	if err = CheckRequest(r, d); err == nil {
		market = r.Candidates[0].Market
		in, err = create(ctx, r)
	}
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, e.ClassifyCreate("create instance "+r.Name, market, err)
	}
	return in, in.Candidate(), nil
}

// Planted implements VerifyHostKey for a Cloud whose host keys are planted: Drover knows the key and never queries the
// cloud.
type Planted struct{}

// VerifyHostKey returns KindUnsupported.
func (Planted) VerifyHostKey(_ context.Context, _ driver.Instance, _, _ []byte) error {
	return drover.Errorf(drover.KindUnsupported, "host keys are installed through user data, so the cloud cannot verify them")
}

// matters orders kinds of error by severity: first what is wrong with every candidate, and capacity before quota, since
// a quota concerns only the types that it covers.
var matters = []drover.ErrorKind{
	drover.KindAuthentication, drover.KindRateLimit, drover.KindTransient, drover.KindCapacity, drover.KindQuota, drover.KindUnsupported, drover.KindInvalid,
}

// TryNext reports whether an error only means that this candidate is not available, so the next one may be.
func TryNext(err error) bool {
	switch drover.KindOf(err) {
	case drover.KindCapacity, drover.KindQuota, drover.KindUnsupported:
		return true
	}
	return false
}

// MostSevere merges the errors of refused candidates, at least one: it returns the most severe, with the messages of
// all. If the candidates were refused for different reasons and one of them is a lack of capacity, the result is a lack
// of capacity.
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

// Fingerprint returns the MD5 fingerprint of a key in authorized_keys format. Clouds identify login keys by it.
func Fingerprint(authorized string) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(authorized))
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "read the login key: %v", err)
	}
	return ssh.FingerprintLegacyMD5(key), nil
}
