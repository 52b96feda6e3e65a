package hetzner

import (
	"net/http"
	"strings"

	"drover/driver/kit"
)

// anyRequest is the one kind of request as far as the rate goes.
const anyRequest = "request"

// rates is that of "Rate Limiting" in the API's reference, for each project: https://docs.hetzner.cloud/reference/cloud#rate-limiting.
var rates = map[string]kit.Rate{anyRequest: {Burst: 3600, PerSecond: 1}}

// gate is where requests go out.
type gate struct {
	kit.Gate
	next http.RoundTripper
}

// RoundTrip refuses at once what is beyond the rate, and counts the rest.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	return g.Send(r, g.next, kindOf(r), anyRequest)
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
