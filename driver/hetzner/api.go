package hetzner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// complete refuses a successful response without what was requested, such as {}: the SDK takes it for an empty list, or
// for an object without an ID.
type complete struct{ http.RoundTripper }

// RoundTrip makes the request.
func (c complete) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	_, what, _ := strings.Cut(callName(r), " ")
	var has map[string]json.RawMessage
	if json.Unmarshal(text, &has) == nil && has[what] == nil && has[strings.TrimSuffix(what, "s")] == nil {
		return nil, fmt.Errorf("Hetzner's response contains no %s", strings.ReplaceAll(what, "_", " "))
	}
	return answer, nil // the SDK reports anything but JSON
}

// connect makes a client that does not retry. It makes no call.
func connect(c Config, token string, network http.RoundTripper, metric func(string, error)) *hcloud.Client {
	out := &kit.Transport{
		Gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, 1), Metric: metric}, Next: complete{kit.Bounded(network)}, Name: callName,
		Rates: func(string) []string { return []string{anyRequest} },
	}
	options := []hcloud.ClientOption{
		hcloud.WithToken(token), hcloud.WithApplication("drover", ""), hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
		hcloud.WithHTTPClient(&http.Client{Transport: out}),
	}
	if c.Endpoint != "" {
		options = append(options, hcloud.WithEndpoint(c.Endpoint))
	}
	return hcloud.NewClient(options...)
}
