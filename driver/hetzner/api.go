package hetzner

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover/driver/kit"
)

// anyRequest is the common bucket of all requests.
const anyRequest = "request"

// rates has the limit per project, from "Rate Limiting" in the API's reference:
// https://docs.hetzner.cloud/reference/cloud#rate-limiting.
var rates = map[string]kit.Rate{anyRequest: {Burst: 3600, PerSecond: 1}}

// callName is a request's method and object.
func callName(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	what := parts[0]
	for _, p := range parts {
		if p == "servers" || p == "server_types" || p == "images" || p == "ssh_keys" || p == "actions" {
			what = p
		}
	}
	return r.Method + " " + what
}

// keysOf returns the keys of which an answer to a call must contain one. Only a deleted key's answer is empty.
func keysOf(call string) []string {
	if call == "DELETE ssh_keys" {
		return nil
	}
	_, what, _ := strings.Cut(call, " ")
	return []string{what, strings.TrimSuffix(what, "s"), "action"}
}

// connect makes a client that does not retry. It makes no call.
func connect(c Config, token string, network http.RoundTripper, metric func(string, error)) *hcloud.Client {
	out := &kit.Transport{
		Gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, 1), Metric: metric}, Next: network, Name: callName, Keys: keysOf,
		Rates: func(string) []string { return []string{anyRequest} },
	}
	options := []hcloud.ClientOption{
		hcloud.WithToken(token), hcloud.WithApplication("drover", ""), hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
		hcloud.WithHTTPClient(&http.Client{Transport: out, CheckRedirect: kit.NoRedirect}),
	}
	if c.Endpoint != "" {
		options = append(options, hcloud.WithEndpoint(c.Endpoint))
	}
	return hcloud.NewClient(options...)
}

// pageSize is the maximum number of entries in a page.
const pageSize = 50

// oldestFirst is the order that CollectNumbered requires.
var oldestFirst = []string{"id:asc"}

// pages reads all pages of a list that is sorted oldestFirst. The number of the last page may be missing; then the next
// page's shows that there are more. A response without page numbers, or with another page, may be incomplete.
func pages[T any](list func(hcloud.ListOpts) ([]T, *hcloud.Response, error)) ([]T, error) {
	return kit.CollectNumbered(func(page int) ([]T, int, error) {
		some, answer, err := list(hcloud.ListOpts{Page: page, PerPage: pageSize})
		if err == nil && kit.Value(answer.Meta.Pagination).Page != page {
			err = fmt.Errorf("Hetzner's response is not page %d", page)
		}
		if err != nil {
			return nil, 0, err
		}
		return some, max(answer.Meta.Pagination.LastPage, answer.Meta.Pagination.NextPage), nil
	})
}
