package digitalocean

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver/kit"
)

// rates are slightly below DigitalOcean's limits for a token in a minute, 250 requests including ten for login keys,
// and well below its limit of 5000 requests in an hour: https://docs.digitalocean.com/reference/api/.
var rates = map[string]kit.Rate{anyRequest: {Burst: 180, PerSecond: 1}, listKeys: {Burst: 5, PerMinute: 5}}

const (
	anyRequest = ""
	listKeys   = "GET /v2/account/keys"
)

// connect makes a client, which does not retry by default. The client returns a redirect as an answer, since following
// it would send the token elsewhere. An API other than DigitalOcean's own publishes no rates.
func connect(c Config, token drover.Secret, network http.RoundTripper, metric func(string, error)) (*godo.Client, kit.Gate, error) {
	gate := kit.Gate{Metric: metric}
	if c.Endpoint == official {
		gate.Limiter = kit.NewRateLimiter(rates, 1)
	}
	api := godo.NewClient(&http.Client{
		Transport: &kit.Transport{
			Gate: gate, Next: network, Token: token, Name: callName, Rates: func(call string) []string { return []string{call, anyRequest} },
		},
		CheckRedirect: kit.NoRedirect,
	})
	base, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, gate, drover.Errorf(drover.KindInvalid, "endpoint: %v", err)
	}
	api.BaseURL = base
	return api, gate, nil
}

// given matches the parts of a path that identify one object.
var given = regexp.MustCompile(`(/(?:droplets|keys|images|tags)/)[^/]+`)

// callName is a request's name in metrics, without ids.
func callName(r *http.Request) string {
	return r.Method + " " + given.ReplaceAllString(r.URL.Path, "${1}ID")
}

const perPage = 200

// pages reads all pages of a list.
func pages[T any](ctx context.Context, page func(context.Context, *godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	return kit.CollectNumbered(func(n int) ([]T, int, error) {
		some, answer, err := page(ctx, &godo.ListOptions{Page: n, PerPage: perPage})
		if err != nil {
			return nil, 0, err
		}
		if answer.Meta == nil {
			return nil, 0, errors.New("the response contains no list")
		}
		links := kit.Value(answer.Links)
		if is, err := links.CurrentPage(); err != nil || max(is, 1) != n {
			return nil, 0, fmt.Errorf("the response is not page %d", n)
		}
		last, err := lastPage(kit.Value(links.Pages).Last)
		return some, last, err
	})
}

// lastPage returns the number of the last page from its URL, which every other page contains; 1 if this one is the last.
func lastPage(of string) (int, error) {
	if of == "" {
		return 1, nil
	}
	u, err := url.Parse(of)
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "the last page's URL is not valid: %v", err)
	}
	n, err := strconv.Atoi(u.Query().Get("page"))
	if err != nil || n < 1 {
		return 0, drover.Errorf(drover.KindTransient, "%q is not a valid last-page number", u.Query().Get("page"))
	}
	return n, nil
}
