package openstack

import (
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
)

// asked records the access rule for each request to the fake. Signing in and listing a service's versions need no rule.
type asked struct {
	*fake
	rules []string
	notes []string
}

var (
	root  = regexp.MustCompile(`^/compute(/v2\.1/?)?$|^/image(/v2)?/?$|^/identity/`)
	where = map[string]string{"compute": "compute", "image": "image", "volume": "volumev3"}
)

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if !root.MatchString(r.URL.Path) {
		service, at, _ := strings.Cut(r.URL.Path[1:], "/")
		a.note(where[service], r.Method, "/"+at)
	}
	return a.fake.RoundTrip(r)
}

// note records the rule that allows a call, or the call itself if there is none.
func (a *asked) note(service, method, at string) {
	called := service + " " + method + " " + at
	if !slices.Contains(a.rules, called) {
		for _, rule := range a.rules {
			if fits, _ := path.Match(rule, called); fits {
				called = rule
				break
			}
		}
	}
	a.notes = append(a.notes, called)
}

func TestAccessRulesMatchCalls(t *testing.T) {
	a := &asked{fake: newFake()}
	rule := regexp.MustCompile(`\{"service": "(\w+)", "method": "(\w+)", "path": "([^"]+)"\}`)
	for _, row := range drivertest.ReadPage(t, "openstack").Words(t, "Permissions", regexp.MustCompile(`(\{"service".*\})`)) {
		a.rules = append(a.rules, strings.Join(rule.FindStringSubmatch(row)[1:], " "))
	}
	slices.Sort(a.rules)
	c := imitate(t, a, "boot_from: volume")
	r := request("one")
	r.Disk = 30 * drover.GiB
	in, _ := drivertest.Create(t, c, r)
	_, err := c.Offerings(t.Context())
	drivertest.Must(t, err)
	for _, ref := range []string{"debian-12-*", debian} {
		_, err = c.FindImages(t.Context(), ref, "amd64")
		drivertest.Must(t, err)
	}
	_, err = c.List(t.Context(), nil)
	drivertest.Must(t, err)
	_, err = c.Describe(t.Context(), in.ID)
	drivertest.Must(t, err)
	drivertest.Must(t, c.SetTags(t.Context(), in.ID, r.Tags))
	drivertest.Must(t, c.GrowDisk(t.Context(), in.ID, 40*drover.GiB))
	drivertest.Must(t, c.Stop(t.Context(), in.ID))
	drivertest.Must(t, c.Start(t.Context(), in.ID))
	drivertest.Must(t, c.Destroy(t.Context(), in.ID))
	slices.Sort(a.notes)
	if diff := cmp.Diff(slices.Compact(a.notes), a.rules); diff != "" {
		t.Errorf("the calls (-) and the page's rules (+): %s", diff)
	}
}
