package hetzner

import (
	"net/http"
	"strings"
	"time"

	"drover/driver"
)

// anyRequest is the one kind of request as far as the rate goes.
const anyRequest = "request"

// rates is that of "Rate Limiting" in the API's reference, for each project: https://docs.hetzner.cloud/reference/cloud#rate-limiting.
var rates = map[string]driver.Rate{anyRequest: {Burst: 3600, PerSecond: 1}}

// gate is where requests go out.
type gate struct {
	next   http.RoundTripper
	budget *driver.Budget
	metric func(request string, err error)
}

// RoundTrip refuses at once what is beyond the rate, and counts the rest.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.budget.Take(anyRequest, time.Now()); err != nil {
		return nil, err
	}
	answer, err := g.next.RoundTrip(r)
	if g.metric != nil {
		g.metric(kindOf(r), driver.Answered(answer, err))
	}
	return answer, err
}

// kindOf is the kind of a request: its method, and what it is about.
func kindOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	what := parts[0]
	for _, p := range parts {
		if p == "servers" || p == "server_types" || p == "images" || p == "ssh_keys" || p == "actions" {
			what = p
		}
	}
	return r.Method + " " + what
}
