// Package digitalocean rents instances from DigitalOcean.
//
// An instance is a Droplet, and a zone is a region. Tags are plain words there, things of the account that outlive what bears them: each of
// Drover's is written as one word, escaped, and what nothing bears any more is a stray. Nothing but a Droplet costs money. One that is off costs
// as much as one that runs.
package digitalocean

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"sync/atomic"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"

	"github.com/digitalocean/godo"
)

// maxInit is how much text an instance can be given for its first boot.
const maxInit = 64 << 10

// longestFleet is how much of a tag a fleet's name may take, escaped.
const longestFleet = 60

// rates are a little below what DigitalOcean allows a token in a minute, 250 requests and among them ten for login keys, and well below the 5000
// that it allows in an hour: https://docs.digitalocean.com/reference/api/.
var rates = map[string]kit.Rate{anyRequest: {Burst: 180, PerSecond: 1}, listKeys: {Burst: 5, PerMinute: 5}}

const (
	anyRequest = ""
	listKeys   = "GET /v2/account/keys"
)

// listLag is how far lists are taken to lag. DigitalOcean documents nothing of it; others met lists, and a get by id, that lacked a new Droplet for
// a few seconds: see docs/drivers.md.
const listLag = time.Minute

// cloud is DigitalOcean, as one fleet uses it.
type cloud struct {
	kit.Planted

	api     *godo.Client
	door    *door
	fleet   string
	name    string
	regions []string
	types   []kit.Type // by hand
	listed  bool       // whether DigitalOcean's own sizes are offered
	vpcs    map[string]string
	names   kit.Names

	lastPage atomic.Int32 // of the list of instances, when it was read last; 0: it had one
}

// Open opens DigitalOcean. It asks nothing of it.
func Open(_ context.Context, o driver.Options) (driver.Cloud, error) {
	return openThrough(http.DefaultTransport, o)
}

func openThrough(network http.RoundTripper, o driver.Options) (driver.Cloud, error) {
	var c Config
	if err := kit.Begin(&o, longestFleet, &c); err != nil {
		return nil, err
	}
	if len(escaped(o.Fleet)) > longestFleet {
		return nil, drover.Errorf(drover.KindInvalid, "the fleet's name %q is too long for DigitalOcean's tags", o.Fleet).WithHint("%d lower-case letters, digits and dashes fit", longestFleet)
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	door := &door{kit.Gate{Limiter: budgetOf(c.Endpoint), Metric: o.Metric}, token, network}
	api, err := client(c.Endpoint, door)
	if err != nil {
		return nil, err
	}
	return &cloud{api: api, door: door, fleet: o.Fleet, name: o.Name, regions: c.Regions, types: c.Types, listed: c.ListTypes, vpcs: c.VPCs}, nil
}

// budgetOf is none for an API other than DigitalOcean's own, which publishes no rates.
func budgetOf(endpoint string) *kit.RateLimiter {
	if endpoint != official {
		return nil
	}
	return kit.NewRateLimiter(rates, 1)
}

// client is the SDK's, which tries nothing again unless told to. A redirect would carry the token elsewhere, so it is an answer.
func client(endpoint string, through http.RoundTripper) (*godo.Client, error) {
	api := godo.NewClient(&http.Client{
		Transport:     through,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	base, err := url.Parse(endpoint)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "endpoint: %v", err)
	}
	api.BaseURL = base
	return api, nil
}

// door is what every request goes through.
type door struct {
	kit.Gate
	token drover.Secret
	next  http.RoundTripper
}

// RoundTrip makes one request, unless it is beyond the budget.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+d.token.Reveal())
	call := called(r)
	if p, has := r.Context().Value(prepaid{}).(*prepaid); has && p.left.Add(-1) >= 0 {
		return d.Send(r, d.next, call, call)
	}
	return d.Send(r, d.next, call, call, anyRequest)
}

// prepaid are requests that were taken from the budget before the first of them is made; a context's key, too.
type prepaid struct{ left atomic.Int32 }

// prepay takes what n requests cost from the budget, or nothing. What takes several requests would otherwise spend all that comes in on the first
// of them, again and again, and never get to the last.
func (d *door) prepay(ctx context.Context, n int) (context.Context, error) {
	n = min(n, rates[anyRequest].Burst)
	if err := d.Limiter.TakeMany(anyRequest, n, time.Now()); err != nil {
		return ctx, err
	}
	p := &prepaid{}
	p.left.Store(int32(n))
	return context.WithValue(ctx, prepaid{}, p), nil
}

// given are the parts of a path that name one thing.
var given = regexp.MustCompile(`(/(?:droplets|keys|images|tags)/)[^/]+`)

// called is a request in the words of a metric, which names no single thing.
func called(r *http.Request) string {
	return r.Method + " " + given.ReplaceAllString(r.URL.Path, "${1}ID")
}

// Capabilities says what this driver can do.
func (*cloud) Capabilities() driver.Capabilities {
	runs, most := Config{}.FirstBoot()
	return driver.Capabilities{
		HostKeys:  driver.HostKeysPlanted,
		PowerOff:  driver.PowerOffStops,
		Init:      runs,
		MaxInit:   most,
		Template:  true,
		StopStart: true,
		Describe:  true,
		ListLag:   listLag,
		Billing:   drover.Billing{Least: time.Minute},
	}
}

// Close has nothing to end.
func (*cloud) Close() error { return nil }
