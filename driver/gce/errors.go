package gce

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"google.golang.org/api/googleapi"

	"drover"
	"drover/driver/kit"
)

// class is what an error code means.
type class struct {
	code  string // * stands for any text
	kind  drover.ErrorKind
	scope drover.Scope
}

// classes is the one table of error codes: the reason of a call's error, the code of an operation's, with the metric behind it where a quota is
// used up, or the status of an answer that has neither. The first row that fits counts; a code that none fits tells nothing. It is shown, with
// what each code means, in docs/clouds/gce.md.
var classes = []class{
	{"ZONE_RESOURCE_POOL_EXHAUSTED", drover.KindCapacity, drover.ScopeType},
	{"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", drover.KindCapacity, drover.ScopeType},
	{"STOCKOUT", drover.KindCapacity, drover.ScopeType},
	{"insufficientCapacity", drover.KindCapacity, drover.ScopeType},
	{"UNSUPPORTED_OPERATION", drover.KindCapacity, drover.ScopeType},
	{"IP_SPACE_EXHAUSTED", drover.KindCapacity, drover.ScopeSubnet},
	{"IP_SPACE_EXHAUSTED_WITH_DETAILS", drover.KindCapacity, drover.ScopeSubnet},

	{"QUOTA_EXCEEDED *_ALL_REGIONS", drover.KindQuota, drover.ScopeAll},
	{"QUOTA_EXCEEDED *CPUS", drover.KindQuota, drover.ScopeQuotaGroup},
	{"QUOTA_EXCEEDED *CPUS_PER_VM_FAMILY", drover.KindQuota, drover.ScopeQuotaGroup},
	{"QUOTA_EXCEEDED *GPUS", drover.KindQuota, drover.ScopeQuotaGroup},
	{"QUOTA_EXCEEDED *GPUS_PER_GPU_FAMILY", drover.KindQuota, drover.ScopeQuotaGroup},
	{"QUOTA_EXCEEDED*", drover.KindQuota, drover.ScopeAll},
	{"quotaExceeded", drover.KindQuota, drover.ScopeAll},
	{"limitExceeded", drover.KindQuota, drover.ScopeAll},

	{"rateLimitExceeded", drover.KindRateLimit, ""},
	{"userRateLimitExceeded", drover.KindRateLimit, ""},
	{"RATE_LIMIT_EXCEEDED", drover.KindRateLimit, ""},
	{"RESOURCE_OPERATION_RATE_EXCEEDED", drover.KindRateLimit, ""},
	{"CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", drover.KindRateLimit, ""},
	{"HTTP 429", drover.KindRateLimit, ""},

	{"authError", drover.KindAuthentication, ""},
	{"forbidden", drover.KindAuthentication, ""},
	{"insufficientPermissions", drover.KindAuthentication, ""},
	{"accessNotConfigured", drover.KindAuthentication, ""},
	{"SERVICE_DISABLED", drover.KindAuthentication, ""},
	{"PERMISSIONS_ERROR", drover.KindAuthentication, ""},
	{"SERVICE_ACCOUNT_ACCESS_DENIED", drover.KindAuthentication, ""},
	{"HTTP 401", drover.KindAuthentication, ""},
	{"HTTP 403", drover.KindAuthentication, ""},

	{"notFound", drover.KindNotFound, ""},
	{"RESOURCE_NOT_FOUND", drover.KindNotFound, ""},
	{"*_NOT_FOUND", drover.KindNotFound, ""},
	{"HTTP 404", drover.KindNotFound, ""},

	{"alreadyExists", drover.KindConflict, ""},
	{"RESOURCE_ALREADY_EXISTS", drover.KindConflict, ""},
	{"HTTP 409", drover.KindConflict, ""},

	{"notImplemented", drover.KindUnsupported, ""},
	{"HTTP 501", drover.KindUnsupported, ""},

	{"conditionNotMet", drover.KindTransient, ""},
	{"resourceNotReady", drover.KindTransient, ""},
	{"RESOURCE_NOT_READY", drover.KindTransient, ""},
	{"resourceInUseByAnotherResource", drover.KindTransient, ""},
	{"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", drover.KindTransient, ""},
	{"backendError", drover.KindTransient, ""},
	{"internalError", drover.KindTransient, ""},
	{"INTERNAL_ERROR", drover.KindTransient, ""},
	{"SERVICE_UNAVAILABLE_FOR_LOCATION", drover.KindTransient, ""},

	{"invalid*", drover.KindInvalid, ""},
	{"INVALID_*", drover.KindInvalid, ""},
	{"MISSING_*", drover.KindInvalid, ""},
	{"FIELD_*", drover.KindInvalid, ""},
	{"required", drover.KindInvalid, ""},
	{"badRequest", drover.KindInvalid, ""},
	{"fieldNotEditable", drover.KindInvalid, ""},
	{"HTTP 400", drover.KindInvalid, ""},
}

// hints are what a person can do about an error of a kind.
var hints = map[drover.ErrorKind]string{
	drover.KindAuthentication: "see the role that this driver needs in docs/clouds/gce.md, and the credentials that Google's tools would use here",
	drover.KindQuota:          "ask for more in Google's console, under IAM & Admin, Quotas",
}

// classOf finds the row of an error code.
func classOf(code string) (c class, known bool) {
	for _, c := range classes {
		if fits, _ := path.Match(c.code, code); fits {
			return c, true
		}
	}
	return class{code, drover.KindTransient, ""}, false
}

// said is what Google says of an error: of a call, or of the operation that it began.
type said struct {
	code, message string
	retryAt       drover.Time // 0 if it does not say when
}

func (s said) Error() string { return s.code + ": " + s.message }

// saidBy is what an error of the SDK says, if Google has answered.
func saidBy(err error) (s said, ok bool) {
	if errors.As(err, &s) {
		return s, true
	}
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return s, false
	}
	s = said{code: "HTTP " + strconv.Itoa(answer.Code), message: answer.Message}
	if wait := kit.RetryAfter(answer.Header, time.Now()); wait > 0 {
		s.retryAt = drover.TimeOf(time.Now().Add(wait))
	}
	for _, e := range answer.Errors {
		if _, known := classOf(e.Reason); known {
			s.code = e.Reason
			break
		}
	}
	return s.withMetric(), true
}

// usedUp is how Google names the metric of a quota that is used up.
var usedUp = regexp.MustCompile(`Quota '([A-Z0-9_]+)' exceeded`)

// withMetric says of a quota which it is.
func (s said) withMetric() said {
	if s.code == "quotaExceeded" || s.code == "QUOTA_EXCEEDED" {
		if m := usedUp.FindStringSubmatch(s.message); m != nil {
			s.code = "QUOTA_EXCEEDED " + m[1]
		}
	}
	return s
}

// kindOf is the kind of an error, empty for none and for one of which Google has said nothing.
func kindOf(err error) drover.ErrorKind {
	s, ok := saidBy(err)
	if !ok {
		return ""
	}
	c, _ := classOf(s.code)
	return c.kind
}

// classify gives an error of Google's a kind. Market is that of what was asked for; empty if none was.
func classify(doing string, market drover.Market, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	if s, ok := saidBy(err); ok {
		return refusal(doing, market, s)
	}
	var credentials *auth.Error
	if errors.As(err, &credentials) && !credentials.Temporary() {
		return drover.Errorf(drover.KindAuthentication, "%s: %v", doing, err).WithHint("%s", hints[drover.KindAuthentication])
	}
	return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
}

// refusal is an error of which Google has said the code. Rates are counted by the minute, so without a word when, it is the next one.
func refusal(doing string, market drover.Market, s said) *drover.Error {
	c, _ := classOf(s.code)
	e := &drover.Error{Kind: c.kind, Scope: c.scope, Hint: hints[c.kind], Message: fmt.Sprintf("%s: %s: %s", doing, s.code, cmp.Or(s.message, "no more was said"))}
	if c.scope == drover.ScopeType || c.scope == drover.ScopeQuotaGroup {
		e.Market = market
	}
	if c.kind == drover.KindRateLimit {
		e.RetryAt = cmp.Or(s.retryAt, drover.TimeOf(time.Now().Truncate(time.Minute).Add(time.Minute)))
	}
	return e
}

// outcome is what became of an operation: an error if it came to nothing.
func outcome(o *op) error {
	if o.Error == nil || len(o.Error.Errors) == 0 {
		return nil
	}
	first := o.Error.Errors[0]
	s := said{code: first.Code, message: first.Message}
	for _, d := range first.ErrorDetails {
		if d != nil && d.QuotaInfo != nil && d.QuotaInfo.MetricName != "" {
			s.code += " " + strings.ToUpper(path.Base(d.QuotaInfo.MetricName))
			return s
		}
	}
	return s.withMetric()
}
