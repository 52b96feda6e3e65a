package drivertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/driver"
)

// Network is between a driver and its fake, and can be broken.
type Network struct {
	Fake http.RoundTripper

	broken   bool
	status   int // of every answer while it is broken; 0: no answer
	requests atomic.Int32
}

var errCut = errors.New("the connection was cut")

// RoundTrip forwards a request, or answers it like an overloaded server.
func (n *Network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.requests.Add(1)
	switch {
	case !n.broken:
		return n.Fake.RoundTrip(r)
	case n.status == 0:
		return nil, errCut
	}
	return &http.Response{
		StatusCode: n.status, Status: http.StatusText(n.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain"}, "Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader("come again")),
	}, nil
}

// Do serves code that uses an HTTP client instead of a transport.
func (n *Network) Do(r *http.Request) (*http.Response, error) { return n.RoundTrip(r) }

// Once tests whether a driver, and the vendor's SDK beneath it, make only one request when it fails: hidden retries
// delay the error and use up the rate. The cloud is opened in a bubble of synctest, where waiting shows.
func Once(t *testing.T, fake http.RoundTripper, request driver.CreateRequest, open func(*testing.T, *Network) driver.Cloud) {
	for name, status := range map[string]int{
		"a cut connection": 0, "too many requests": 429, "an internal error": 500, "a bad gateway": 502, "an overload": 503, "a gateway timeout": 504,
	} {
		t.Run("after "+name+", nothing is retried", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &Network{Fake: fake}
				n.try(t, open(t, n), request, status)
			})
		})
	}
}

// try makes each kind of call. The first create uses a working network, so that requests which a driver makes only once
// are not counted.
func (n *Network) try(t *testing.T, c driver.Cloud, request driver.CreateRequest, status int) {
	in, _ := Create(t, c, request)
	n.broken, n.status = true, status
	request.Name += "-again"
	for name, call := range map[string]func(context.Context) error{
		"create":  func(ctx context.Context) error { _, _, err := c.Create(ctx, request); return err },
		"list":    func(ctx context.Context) error { _, err := c.List(ctx, nil); return err },
		"tag":     func(ctx context.Context) error { return c.SetTags(ctx, in.ID, request.Tags) },
		"destroy": func(ctx context.Context) error { return c.Destroy(ctx, in.ID) },
	} {
		before, began := n.requests.Load(), time.Now()
		err := call(t.Context())
		made, took := n.requests.Load()-before, time.Since(began)
		if err == nil || made != 1 || took > 0 {
			t.Errorf("%s: %d requests in %v, then %v", name, made, took, err)
		}
	}
}
