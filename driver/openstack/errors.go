package openstack

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"drover"
	"drover/driver/kit"
)

// limitedFor is the wait after a rate limit for which the cloud names no time.
const limitedFor = 2 * time.Second

// errs is the table of errors. OpenStack has no codes, only statuses and messages, and the state ERROR of a server that
// was accepted but could not be created. docs/clouds/openstack.md shows the table with what each entry means.
var errs = kit.Errors{
	Market: drover.OnDemand, ByName: true, Read: read, Again: kit.In(limitedFor), Others: classifyOther,
	Table: slices.Concat(
		kit.Means(drover.KindCapacity, drover.ScopeType,
			"ERROR: No valid host was found", "ERROR: Exceeded maximum number of retries", "ERROR: Insufficient compute resources"),
		kit.Means(drover.KindCapacity, drover.ScopeSubnet,
			"ERROR: No fixed IP addresses available", "ERROR: No more IP addresses available", "ERROR: Failed to allocate the network"),
		kit.Means(drover.KindQuota, drover.ScopeAll,
			"ERROR: Quota exceeded for*instances", "ERROR: over a limit*servers", "ERROR: Maximum number of ports exceeded",
			"ERROR: Maximum number of volumes", "ERROR: exceeds allowed*quota"),
		kit.Means(drover.KindQuota, drover.ScopeType, "ERROR: Quota exceeded for", "ERROR: over a limit"),
		kit.Means(drover.KindQuota, drover.ScopeAll,
			"403: Quota exceeded for*instances", "403: over a limit*servers", "403: Maximum number of ports exceeded", "403: Maximum number of metadata items",
			"413: exceeds allowed*quota"),
		kit.Means(drover.KindQuota, drover.ScopeType, "403: Quota exceeded", "403: over a limit", "413: Quota exceeded"),
		kit.Means(drover.KindUnsupported, "", "403: Only volume-backed servers are allowed", "413: larger than maximum allowed limit"),
		kit.Means(drover.KindInvalid, "", "403: create an interface on external network", "ERROR: create an interface on external network").
			WithHint("set networks to an internal network; to list these networks: openstack network list --internal"),
		kit.Means(drover.KindAuthentication, "", "403", "401"),
		kit.Means(drover.KindRateLimit, "", "429", "413"),
		kit.Means(drover.KindNotFound, "", "404"),
		kit.Means(drover.KindInvalid, "", "409: Multiple possible networks found").WithHint("set networks: ID; to list the IDs: openstack network list"),
		kit.Means(drover.KindInvalid, "", "409: Multiple security_group matches found").WithHint("write ids in security_groups; to list them: openstack security group list"),
		kit.Means(drover.KindConflict, "", "409: already exists"),
		kit.Means(drover.KindTransient, "", "409: is locked").WithHint("whoever locked it can unlock it: openstack server unlock ID"),
		kit.Means(drover.KindTransient, "", "409"),
		kit.Means(drover.KindUnsupported, "", "400: Flavor's disk is too small", "400: Flavor's memory is too small",
			"400: availability zone is not available", "400: to extend, currently error"),
		kit.Means(drover.KindTransient, "", "400: to extend, currently", "400: marker*not found"),
		kit.Means(drover.KindUnsupported, "", "406: Version 3.*is not supported", "501"),
		kit.Means(drover.KindInvalid, "", "400", "406"),
	),
	Hints: map[drover.ErrorKind]string{
		drover.KindAuthentication: "docs/clouds/openstack.md describes the role that this driver needs; check that openstack server list works here",
		drover.KindQuota:          "ask the cloud's operator for a higher quota; openstack limits show --absolute shows the current limits",
	},
}

// read extracts the cloud's answer from an error, including an error of signing in again.
func read(err error) (a kit.Answer, ok bool) {
	expired, again := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err)
	if again {
		err = expired.ErrReauth
	}
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) {
		return a, false
	}
	a = kit.Answer{Status: answer.Actual, Message: words(answer.Body), Retry: kit.RetryAfter(answer.ResponseHeader, time.Now())}
	if a.Status == http.StatusNotFound && (again || a.Message == "") {
		a = kit.Foreign404("OpenStack")
	}
	return a, true
}

// classifyOther classifies the error for a service that is not in the catalogue.
func classifyOther(doing string, err error) error {
	if _, ok := errors.AsType[*gophercloud.ErrEndpointNotFound](err); ok {
		return drover.Errorf(drover.KindInvalid, "%s: %v", doing, err).WithHint("to list each service's regions: openstack catalog list")
	}
	return nil
}

// ofNova makes a 404 for a server transient unless it is Nova's own: a proxy may return one for other reasons, and the
// server is not gone.
func ofNova(err error) error {
	var answer gophercloud.ErrUnexpectedResponseCode
	var body struct {
		Fault *struct{} `json:"itemNotFound"`
	}
	if !errors.As(err, &answer) || answer.Actual != http.StatusNotFound || json.Unmarshal(answer.Body, &body) == nil && body.Fault != nil {
		return err
	}
	return drover.Errorf(drover.KindTransient, "the 404 response did not come from Nova")
}

// words returns the message of an answer: services put it into an object under various keys, and a proxy may answer
// anything.
func words(body []byte) string {
	type fault struct {
		Message string `json:"message"`
	}
	var whole fault
	var parts map[string]json.RawMessage
	json.Unmarshal(body, &parts) // a body that is not an object has no message
	json.Unmarshal(body, &whole)
	for _, part := range parts {
		var inner fault
		if whole.Message == "" && json.Unmarshal(part, &inner) == nil {
			whole.Message = inner.Message
		}
	}
	return whole.Message
}
