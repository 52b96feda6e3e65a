package hetzner

import (
	"net/http"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

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

// connect makes a client that tries nothing twice, and whose requests go out through the gate.
func connect(c Config, token string, gate *gate) *hcloud.Client {
	options := []hcloud.ClientOption{
		hcloud.WithToken(token), hcloud.WithApplication("drover", ""), hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
		hcloud.WithHTTPClient(&http.Client{Transport: gate}),
	}
	if c.Endpoint != "" {
		options = append(options, hcloud.WithEndpoint(c.Endpoint))
	}
	return hcloud.NewClient(options...)
}
