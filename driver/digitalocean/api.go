package digitalocean

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver/kit"
)

// rates are a little below what DigitalOcean allows a token in a minute, 250 requests and among them ten for login keys, and well below the 5000
// that it allows in an hour: https://docs.digitalocean.com/reference/api/.
var rates = map[string]kit.Rate{anyRequest: {Burst: 180, PerSecond: 1}, listKeys: {Burst: 5, PerMinute: 5}}

const (
	anyRequest = ""
	listKeys   = "GET /v2/account/keys"
)

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

const perPage = 200

// pages reads a list to its end.
func pages[T any](page func(*godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	return kit.CollectNumbered(func(n int) ([]T, int, error) {
		some, answer, err := page(&godo.ListOptions{Page: n, PerPage: perPage})
		if err != nil {
			return nil, 0, err
		}
		last, err := lastPage(answer)
		return some, last, err
	})
}

// lastPage is the number of the last page, as every other page tells it; 1 if this one is the last.
func lastPage(answer *godo.Response) (int, error) {
	if answer.Links == nil || answer.Links.Pages == nil || answer.Links.Pages.Last == "" {
		return 1, nil
	}
	u, err := url.Parse(answer.Links.Pages.Last)
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "the last page has no address: %v", err)
	}
	n, err := strconv.Atoi(u.Query().Get("page"))
	if err != nil || n < 1 {
		return 0, drover.Errorf(drover.KindTransient, "the list has page %q as its last", u.Query().Get("page"))
	}
	return n, nil
}
