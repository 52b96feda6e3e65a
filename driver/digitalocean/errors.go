package digitalocean

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver/kit"
)

// unknownKey is DigitalOcean's message about a login key that is not in the account or was added a moment ago.
const unknownKey = "invalid key identifiers"

// errs is the table of errors. DigitalOcean's codes say no more than the status, so only the message distinguishes a
// full region from a misspelt value. docs/clouds/digitalocean.md shows the table.
var errs = kit.Errors{
	Market: drover.OnDemand, ByName: true, Read: read,
	Table: slices.Concat(
		kit.Means(drover.KindAuthentication, "", "401").WithHint("create a new token in DigitalOcean's control panel"),
		kit.Means(drover.KindAuthentication, "", "403").WithHint("give the token the scopes that docs/clouds/digitalocean.md lists"),
		kit.Means(drover.KindNotFound, "", "404"),
		kit.Means(drover.KindRateLimit, "", "429"),
		kit.Means(drover.KindQuota, drover.ScopeAll, "422: droplet limit").WithHint("ask DigitalOcean for a higher Droplet limit"),
		kit.Means(drover.KindQuota, drover.ScopeType, "422: currently restricted").WithHint("ask DigitalOcean to enable this size for the account"),
		kit.Means(drover.KindInvalid, "", "422: image you specified is not available").WithHint("copy the image to the region"),
		kit.Means(drover.KindCapacity, drover.ScopeType, "422: size is not available", "422: size is unavailable"),
		kit.Means(drover.KindCapacity, drover.ScopeZone, "422: region is not available", "422: high demand"),
		kit.Means(drover.KindTransient, "", "422: pending event", "422: locked", "422: "+unknownKey),
		kit.Means(drover.KindInvalid, "", "422", "400"),
	),
}

// read extracts DigitalOcean's answer from an error, with the request id for its support.
func read(err error) (a kit.Answer, ok bool) {
	var answer *godo.ErrorResponse
	if !errors.As(err, &answer) || answer.Response == nil {
		return a, false
	}
	header := answer.Response.Header
	kind := header.Get("Content-Type")
	if answer.Response.StatusCode == http.StatusNotFound && (answer.Message == "" || kind != "" && !strings.Contains(kind, "json")) {
		return kit.Foreign404("DigitalOcean"), true
	}
	a = kit.Answer{Status: answer.Response.StatusCode, Message: answer.Message, Retry: kit.RetryAfter(header, time.Now())}
	if a.Status == http.StatusTooManyRequests && a.Retry == 0 {
		a.Retry = untilReset(header, time.Now())
	}
	if answer.RequestID != "" {
		a.Message += " (request " + answer.RequestID + ")"
	}
	return a, true
}

// untilReset returns the wait after a request over the hourly limit; 0 if it is unknown. Every response contains the
// time at which the oldest request of the last hour no longer counts, but DigitalOcean gives no other time for these.
func untilReset(h http.Header, now time.Time) time.Duration {
	reset, err := strconv.ParseInt(h.Get("Ratelimit-Reset"), 10, 64)
	if wait := time.Unix(reset, 0).Sub(now); err == nil && wait > 0 && wait <= time.Hour {
		return wait
	}
	return 0
}
