package gce

import (
	"context"
	"io"
	"net/http"
	"sync"

	"cloud.google.com/go/auth"
	detect "cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"

	"drover"
)

// scope is what the credentials are asked for; what they may do is a matter of their roles.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// maxAnswer bounds an answer: a page of the price list has some 6 MiB.
const maxAnswer = 64 << 20

// credentials are those that Google's tools would use, looked for once they are needed. As a transport they sign requests, over HTTP.
type credentials struct {
	mu     sync.Mutex
	found  *auth.Credentials // guarded by mu, as is the next
	signer http.RoundTripper
}

// project is that of the credentials, empty if they are nobody's in particular.
func (c *credentials) project(ctx context.Context) (string, error) {
	if _, err := c.look(); err != nil {
		return "", err
	}
	return c.found.ProjectID(ctx)
}

// RoundTrip makes a request in the name of the credentials.
func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	signer, err := c.look()
	if err != nil {
		return nil, err
	}
	return signer.RoundTrip(r)
}

// look finds the credentials. What is not there now may be there at the next call.
func (c *credentials) look() (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signer != nil {
		return c.signer, nil
	}
	found, err := detect.DetectDefault(&detect.DetectOptions{Scopes: []string{scope}})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "no Google credentials: %v", err).
			WithHint("give the controller's host a service account, or run gcloud auth application-default login")
	}
	client, err := httptransport.NewClient(&httptransport.Options{
		Credentials: found, DisableTelemetry: true, BaseRoundTripper: bounded{http.DefaultTransport.(*http.Transport).Clone()},
	})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "Google credentials: %v", err)
	}
	c.found, c.signer = found, client.Transport
	return c.signer, nil
}

// bounded ends answers that have no end.
type bounded struct{ http.RoundTripper }

// RoundTrip makes the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}
