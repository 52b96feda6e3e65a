package openstack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"drover"
	"drover/driver/kit"
)

// limitedFor is how long calls are left alone that the cloud had too many of, if it does not say.
const limitedFor = 2 * time.Second

// class is what an answer means that has this status and these words.
type class struct {
	status int    // of HTTP; 0: the fault of a server that was accepted and could not be made
	words  string // which occur; * stands for any text
	kind   drover.ErrorKind
	scope  drover.Scope
}

// classes is the one table of errors: OpenStack has no codes, but statuses and words. The first row that fits counts; what none fits tells
// nothing. It is shown, with what each means, in docs/clouds/openstack.md.
var classes = []class{
	{0, "No valid host was found", drover.KindCapacity, drover.ScopeType},
	{0, "Exceeded maximum number of retries", drover.KindCapacity, drover.ScopeType},
	{0, "Insufficient compute resources", drover.KindCapacity, drover.ScopeType},
	{0, "No fixed IP addresses available", drover.KindCapacity, drover.ScopeSubnet},
	{0, "No more IP addresses available", drover.KindCapacity, drover.ScopeSubnet},
	{0, "Failed to allocate the network", drover.KindCapacity, drover.ScopeSubnet},
	{0, "Quota exceeded for*instances", drover.KindQuota, drover.ScopeAll},
	{0, "Quota exceeded for", drover.KindQuota, drover.ScopeType},
	{0, "over a limit*servers", drover.KindQuota, drover.ScopeAll},
	{0, "over a limit", drover.KindQuota, drover.ScopeType},
	{0, "Maximum number of ports exceeded", drover.KindQuota, drover.ScopeAll},
	{0, "Maximum number of volumes", drover.KindQuota, drover.ScopeAll},
	{0, "exceeds allowed*quota", drover.KindQuota, drover.ScopeAll},

	{http.StatusForbidden, "Quota exceeded for*instances", drover.KindQuota, drover.ScopeAll},
	{http.StatusForbidden, "Quota exceeded", drover.KindQuota, drover.ScopeType},
	{http.StatusForbidden, "over a limit*servers", drover.KindQuota, drover.ScopeAll},
	{http.StatusForbidden, "over a limit", drover.KindQuota, drover.ScopeType},
	{http.StatusForbidden, "Maximum number of ports exceeded", drover.KindQuota, drover.ScopeAll},
	{http.StatusForbidden, "", drover.KindAuthentication, ""},
	{http.StatusUnauthorized, "", drover.KindAuthentication, ""},

	{http.StatusTooManyRequests, "", drover.KindRateLimit, ""},
	{http.StatusRequestEntityTooLarge, "Quota exceeded", drover.KindQuota, drover.ScopeType},
	{http.StatusRequestEntityTooLarge, "exceeds allowed*quota", drover.KindQuota, drover.ScopeAll},
	{http.StatusRequestEntityTooLarge, "larger than maximum allowed limit", drover.KindUnsupported, ""},
	{http.StatusRequestEntityTooLarge, "", drover.KindRateLimit, ""},

	{http.StatusNotFound, "", drover.KindNotFound, ""},

	{http.StatusConflict, "Multiple possible networks found", drover.KindInvalid, ""},
	{http.StatusConflict, "already exists", drover.KindConflict, ""},
	{http.StatusConflict, "", drover.KindTransient, ""},

	{http.StatusBadRequest, "Flavor's disk is too small", drover.KindUnsupported, ""},
	{http.StatusBadRequest, "Flavor's memory is too small", drover.KindUnsupported, ""},
	{http.StatusBadRequest, "Only volume-backed servers are allowed", drover.KindUnsupported, ""},
	{http.StatusBadRequest, "availability zone is not available", drover.KindUnsupported, ""},
	{http.StatusBadRequest, "to extend, currently error", drover.KindUnsupported, ""},
	{http.StatusBadRequest, "to extend, currently", drover.KindTransient, ""},
	{http.StatusBadRequest, "", drover.KindInvalid, ""},
	{http.StatusNotAcceptable, "Version 3.*is not supported", drover.KindUnsupported, ""},
	{http.StatusNotAcceptable, "", drover.KindInvalid, ""},
	{http.StatusNotImplemented, "", drover.KindUnsupported, ""},
}

// hints are what a person can do about an error of a kind.
var hints = map[drover.ErrorKind]string{
	drover.KindAuthentication: "see the role that this driver needs in docs/clouds/openstack.md, and whether openstack server list works here",
	drover.KindQuota:          "ask whoever runs the cloud for more: openstack limits show --absolute has what there is",
}

// classOf finds the row of an answer.
func classOf(status int, words string) class {
	for _, c := range classes {
		if c.status == status && kit.MatchGlob("*"+c.words+"*", words) {
			return c
		}
	}
	return class{status, "", drover.KindTransient, ""}
}

// classify gives an error of the cloud's a kind.
func classify(doing string, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	var expired *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &expired) {
		return classify(doing+": sign in again", expired.ErrReauth)
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	var nowhere *gophercloud.ErrEndpointNotFound
	switch {
	case errors.As(err, &answer):
		e := refusal(doing, answer.Actual, said(answer))
		if e.Kind == drover.KindRateLimit {
			e.RetryAt = drover.TimeOf(retryAt(answer.ResponseHeader, time.Now()))
		}
		return e
	case errors.As(err, &nowhere):
		return drover.Errorf(drover.KindInvalid, "%s: %v", doing, err).WithHint("openstack catalog list shows the regions of each service")
	}
	return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
}

// refusal is an error of which the cloud has said so much.
func refusal(doing string, status int, words string) *drover.Error {
	words = strings.TrimSpace(words)
	c := classOf(status, words)
	e := &drover.Error{Kind: c.kind, Scope: c.scope, Hint: hints[c.kind], Message: fmt.Sprintf("%s: %s", doing, cmp.Or(words, http.StatusText(status), "no more was said"))}
	if c.scope != "" {
		e.Market = drover.OnDemand
	}
	if strings.Contains(words, "Multiple possible networks") {
		e.Hint = "write networks: ID, as openstack network list shows it"
	}
	return e
}

// statusOf is that of an answer which is an error, 0 if the cloud has not answered.
func statusOf(err error) int {
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) {
		return answer.Actual
	}
	return 0
}

// saidByNova says of a 404 that it is Nova's, of something that is not there.
func saidByNova(err error) bool {
	var answer gophercloud.ErrUnexpectedResponseCode
	var body struct {
		Fault *struct{} `json:"itemNotFound"`
	}
	return errors.As(err, &answer) && json.Unmarshal(answer.Body, &body) == nil && body.Fault != nil
}

// mostWords is how many bytes of what the cloud says are told on.
const mostWords = 500

// said is the message of an answer: services put it in an object of one key or another, and what stands before them may say anything.
func said(answer gophercloud.ErrUnexpectedResponseCode) string {
	type fault struct {
		Message string `json:"message"`
	}
	var whole fault
	var parts map[string]json.RawMessage
	json.Unmarshal(answer.Body, &parts) // what is no object says nothing
	json.Unmarshal(answer.Body, &whole)
	words := whole.Message
	for _, part := range parts {
		var inner fault
		if words == "" && json.Unmarshal(part, &inner) == nil {
			words = inner.Message
		}
	}
	return strings.ToValidUTF8(words[:min(len(words), mostWords)], "")
}

// retryAt is when the cloud wants to be asked again.
func retryAt(h http.Header, now time.Time) time.Time {
	return now.Add(cmp.Or(kit.RetryAfter(h, now), limitedFor))
}
