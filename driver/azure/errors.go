package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"drover"
	"drover/driver/kit"
)

// limitedFor is how long calls are left alone that Azure refused for their rate, if it does not say.
const limitedFor = 30 * time.Second

// class is what an error code means.
type class struct {
	code   string // a * in it stands for any text; Azure spells codes with one capital more or less
	says   string // what the message has in it, in small letters; empty: anything
	kind   drover.ErrorKind
	scope  drover.Scope
	market bool // whether it is about the market that was asked for, and no other
}

// classes is the one table of error codes. The first row that fits counts; a code that none fits tells nothing. It is shown, with what each
// code means, in docs/clouds/azure.md.
var classes = slices.Concat(
	rows(class{kind: drover.KindCapacity, scope: drover.ScopeType, market: true},
		"AllocationFailed", "ZonalAllocationFailed", "OverconstrainedAllocationRequest", "OverconstrainedZonalAllocationRequest", "SkuNotAvailable", "SpotPriceGreaterThanProvidedMaxPrice"),
	rows(class{kind: drover.KindCapacity, scope: drover.ScopeSubnet}, "SubnetIsFull"),

	rows(class{kind: drover.KindQuota, scope: drover.ScopeAll, market: true}, "*: regional cores quota"),
	rows(class{kind: drover.KindQuota, scope: drover.ScopeQuotaGroup, market: true}, "*: cores quota", "QuotaExceeded", "OperationNotAllowed: quota"),
	rows(class{kind: drover.KindQuota, scope: drover.ScopeAll}, "*CountLimitReached", "ResourceQuotaExceeded"),

	rows(class{kind: drover.KindRateLimit},
		"HTTP 429", "TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled", "ResourceCollectionRequestsThrottled", "RateLimiting"),
	rows(class{kind: drover.KindAuthentication},
		"AuthorizationFailed", "LinkedAuthorizationFailed", "AccessDenied", "BadRequest: novalidsubscriptionsinqueryrequest", "AuthenticationFailed", "InvalidAuthenticationToken*",
		"ExpiredAuthenticationToken", "SubscriptionNotFound", "ReadOnlyDisabledSubscription", "VMStoppedToWarnSubscription", "MissingSubscriptionRegistration",
		"MissingRegistrationForLocation", "SubscriptionNotRegistered", "InvalidSubscriptionRegistrationState", "ScopeLocked", "SubscriptionNotAuthorizedForImage",
		"MarketplacePurchaseEligibilityFailed", "ResourcePurchaseValidationFailed", "HTTP 401", "HTTP 403"),
	rows(class{kind: drover.KindNotFound},
		"ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound", "VMNotFound", "NotFound", "ImageNotFound", "PlatformImageNotFound", "GalleryImageNotFound", "HTTP 404",
		"OperationNotAllowed: marked for deletion"),
	rows(class{kind: drover.KindConflict}, "PreconditionFailed", "HTTP 412", "NicInUse", "PublicIPAddressCannotBeDeleted", "OperationNotAllowed: is attached to"),
	rows(class{kind: drover.KindTransient}, "OperationNotAllowed: operation is in progress", "OperationNotAllowed: ongoing operation"),
	rows(class{kind: drover.KindUnsupported},
		"OperationNotAllowed", "BadRequest: hypervisor generation", "BadRequest: is not supported", "InvalidParameter: is not supported",
		"InvalidParameter: is not available in the current", "RequestDisallowedByPolicy", "AzureSpot*", "RegionDoesNotAllowProvisioning", "NotSupported",
		"NoRegisteredProviderFound", "LocationNotAvailableForResourceType", "AvailabilityZoneNotSupported"),
	rows(class{kind: drover.KindTransient},
		"Conflict", "AnotherOperationInProgress", "ResourceGroupBeingDeleted", "OperationPreempted", "NicReservedForAnotherVm", "DiskImageNotReady",
		"RetryableError*", "InternalExecutionError", "InternalServerError", "InternalOperationError", "InternalDiskManagementError",
		"NetworkingInternalOperationError", "VMStartTimedOut", "ResourceUpdateBlockedOnPlatformUpdate", "OSProvisioning*", "ServerTimeout", "ServiceUnavailable"),
	rows(class{kind: drover.KindInvalid}, "Invalid*", "BadRequest", "PropertyChangeNotAllowed", "ConflictingUserInput", "VMMarketplaceInvalidInput", "HTTP 400"),
)

// rows are classes that differ only in what Azure says: a code, and behind a colon what the message has in it.
func rows(of class, said ...string) (all []class) {
	for _, s := range said {
		of.code, of.says, _ = strings.Cut(s, ": ")
		all = append(all, of)
	}
	return all
}

// hints are what a person can do about an error of a kind.
var hints = map[drover.ErrorKind]string{
	drover.KindAuthentication: "see the roles that this driver needs in docs/clouds/azure.md, and who az account show says you are",
	drover.KindQuota:          "ask for more in the Azure portal, under Quotas; az vm list-usage tells what there is",
}

// classOf finds the row of an error code and message.
func classOf(code, message string) class {
	said, message := strings.ToLower(code), strings.ToLower(message)
	for _, c := range classes {
		if kit.MatchGlob(strings.ToLower(c.code), said) && strings.Contains(message, c.says) {
			return c
		}
	}
	return class{code: code, kind: drover.KindTransient}
}

// kindOf is the kind of an error, whatever was being done.
func kindOf(err error) drover.ErrorKind { return drover.KindOf(classify("", "", err)) }

// said is the code and the message of an answer, with the details that it has. What was refused for its rate has many codes, of which some mean
// other things too, and one status.
func said(answer *azcore.ResponseError) (code, message string) {
	code, message = answer.ErrorCode, "no more was said"
	var body struct {
		Error struct {
			Code, Message string
			Details       []struct{ Code, Message string }
		} `json:"error"`
	}
	if answer.RawResponse != nil {
		if text, err := runtime.Payload(answer.RawResponse); err == nil && json.Unmarshal(text, &body) == nil {
			code, message = cmp.Or(code, body.Error.Code), cmp.Or(body.Error.Message, message)
			for _, d := range body.Error.Details {
				message += fmt.Sprintf("; %s: %s", d.Code, d.Message)
			}
		}
	}
	busy := strings.HasPrefix(code, "RetryableError") // the network's word for what something else has at the moment, with the same status
	if code == "" || answer.StatusCode == http.StatusTooManyRequests && !busy {
		code = fmt.Sprint("HTTP ", answer.StatusCode)
	}
	return code, message
}

// classify gives an error of the cloud's a kind. Market is that of what was asked for; empty if none was.
func classify(doing string, market drover.Market, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
	}
	code, message := said(answer)
	e := refusal(doing, market, code, message)
	if r := answer.RawResponse; r != nil {
		if wait := cmp.Or(kit.RetryAfter(r.Header, time.Now()), quotaAfter(r.Header)); wait > 0 {
			e.RetryAt = drover.TimeOf(time.Now().Add(wait))
		}
	}
	return e
}

// quotaAfter is how long Azure Resource Graph, which has a header of its own for it, asks to wait: 00:00:05.
func quotaAfter(h http.Header) time.Duration {
	var hours, minutes, seconds time.Duration
	if n, _ := fmt.Sscanf(h.Get("x-ms-user-quota-resets-after"), "%d:%d:%d", &hours, &minutes, &seconds); n < 3 {
		return 0
	}
	return min(max(0, hours*time.Hour+minutes*time.Minute+seconds*time.Second), time.Hour)
}

// refusal is an error of which the cloud has said the code.
func refusal(doing string, market drover.Market, code, message string) *drover.Error {
	c := classOf(code, message)
	e := &drover.Error{Kind: c.kind, Scope: c.scope, Hint: hints[c.kind], Message: fmt.Sprintf("%s: %s: %s", doing, code, strings.TrimSpace(message))}
	if c.market {
		e.Market = market
	}
	if c.kind == drover.KindRateLimit {
		e.RetryAt = drover.TimeOf(time.Now().Add(limitedFor))
	}
	return e
}
