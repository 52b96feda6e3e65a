package gce

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/auth"

	"drover"
	"drover/driver/kit"
)

const roleHint = "compare the role in docs/clouds/gce.md with the permissions of the credentials that Google's tools would use here"

// errs classifies errors by the reason of a call's error, the code of an operation's error (with the metric if a quota
// is used up), or the status of an answer with neither. docs/clouds/gce.md shows the table with what each code means.
var errs = kit.Errors{
	Table: table, ByName: true, Read: read, Again: nextMinute, Others: classifyOther,
	Hints: map[drover.ErrorKind]string{
		drover.KindAuthentication: roleHint,
		drover.KindQuota:          "request an increase in Google's console, under IAM & Admin, Quotas",
	},
}

var table = slices.Concat(
	kit.Means(drover.KindCapacity, drover.ScopeType,
		"ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "STOCKOUT", "insufficientCapacity",
		"UNSUPPORTED_OPERATION"),
	kit.Means(drover.KindCapacity, drover.ScopeSubnet, "IP_SPACE_EXHAUSTED", "IP_SPACE_EXHAUSTED_WITH_DETAILS"),
	kit.Means(drover.KindQuota, drover.ScopeQuotaGroup,
		"QUOTA_EXCEEDED *CPUS", "QUOTA_EXCEEDED *CPUS_PER_VM_FAMILY", "QUOTA_EXCEEDED *GPUS", "QUOTA_EXCEEDED *GPUS_PER_GPU_FAMILY",
		"QUOTA_EXCEEDED GPUS_ALL_REGIONS"),
	kit.Means(drover.KindQuota, drover.ScopeAll, "QUOTA_EXCEEDED*", "quotaExceeded", "limitExceeded"),
	kit.Means(drover.KindRateLimit, "",
		"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "RESOURCE_OPERATION_RATE_EXCEEDED",
		"CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"),
	kit.Means(drover.KindAuthentication, "",
		"authError", "forbidden", "insufficientPermissions", "PERMISSIONS_ERROR", "accessNotConfigured", "SERVICE_DISABLED",
		"SERVICE_ACCOUNT_ACCESS_DENIED"),
	kit.Means(drover.KindNotFound, "", "notFound", "RESOURCE_NOT_FOUND", "*_NOT_FOUND"),
	kit.Means(drover.KindConflict, "", "alreadyExists", "RESOURCE_ALREADY_EXISTS"),
	kit.Means(drover.KindUnsupported, "", "notImplemented"),
	kit.Means(drover.KindTransient, "",
		"conditionNotMet", "resourceNotReady", "RESOURCE_NOT_READY", "resourceInUseByAnotherResource",
		"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "backendError", "internalError", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE_FOR_LOCATION"),
	kit.Means(drover.KindInvalid, "",
		"invalid*", "MISSING_*", "FIELD_*", "required", "badRequest", "fieldNotEditable"),

	kit.Means(drover.KindRateLimit, "", "429"),
	kit.Means(drover.KindAuthentication, "", "401", "403"),
	kit.Means(drover.KindNotFound, "", "404"),
	kit.Means(drover.KindConflict, "", "409"),
	kit.Means(drover.KindUnsupported, "", "501"),
	kit.Means(drover.KindInvalid, "", "400"),
)

// nextMinute returns when to call again: rates are counted per minute.
func nextMinute(now time.Time) time.Time { return now.Truncate(time.Minute).Add(time.Minute) }

// said is the error of a call or its operation.
type said kit.Answer

func (s said) Error() string { return kit.Answer(s).String() }

// read extracts Google's answer from an error.
func read(err error) (kit.Answer, bool) {
	s, is := errors.AsType[said](err)
	return kit.Answer(s), is
}

// refused returns the error of an answer. If it has several reasons, the first one in the table counts.
func refused(status int, header http.Header, text []byte) error {
	var body resource
	json.Unmarshal(bytes.Trim(text, "[]"), &body) // the body may be a list of one, or not from Google
	a := kit.Answer{Status: cmp.Or(body.Error.Code, status), Message: body.Error.Message, Retry: kit.RetryAfter(header, time.Now())}
	if a.Status == http.StatusNotFound && body.Error.Code == 0 && a.Message == "" {
		a = kit.Foreign404("Google")
	}
	for _, e := range slices.Backward(body.Error.Errors) {
		if table.Knows(e.Reason) {
			a.Code = e.Reason
		}
	}
	return said(withMetric(a))
}

// usedUp finds the metric of an exhausted quota.
var usedUp = regexp.MustCompile(`Quota '([A-Z0-9_]+)' exceeded`)

// withMetric adds the metric of a quota to the code.
func withMetric(a kit.Answer) kit.Answer {
	if a.Code == "quotaExceeded" || a.Code == "QUOTA_EXCEEDED" {
		if m := usedUp.FindStringSubmatch(a.Message); m != nil {
			a.Code = "QUOTA_EXCEEDED " + m[1]
		}
	}
	return a
}

// classifyOther classifies refused credentials.
func classifyOther(doing string, err error) error {
	if e, is := errors.AsType[*auth.Error](err); is && !e.Temporary() {
		return drover.Errorf(drover.KindAuthentication, "%s: %v", doing, err).WithHint(roleHint)
	}
	return nil
}

// outcome returns an operation's error, if it failed.
func outcome(o resource) error {
	if len(o.Error.Errors) == 0 {
		return nil
	}
	first := o.Error.Errors[0]
	a := kit.Answer{Code: first.Code, Message: first.Message}
	for _, d := range first.ErrorDetails {
		if metric := d.QuotaInfo.MetricName; metric != "" {
			a.Code += " " + strings.ToUpper(path.Base(metric))
			return said(a)
		}
	}
	return said(withMetric(a))
}
