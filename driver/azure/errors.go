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
	"drover/driver"
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
var classes = []class{
	{"AllocationFailed", "", drover.KindCapacity, drover.ScopeType, true},
	{"ZonalAllocationFailed", "", drover.KindCapacity, drover.ScopeType, true},
	{"OverconstrainedAllocationRequest", "", drover.KindCapacity, drover.ScopeType, true},
	{"OverconstrainedZonalAllocationRequest", "", drover.KindCapacity, drover.ScopeType, true},
	{"SkuNotAvailable", "", drover.KindCapacity, drover.ScopeType, true},
	{"SpotPriceGreaterThanProvidedMaxPrice", "", drover.KindCapacity, drover.ScopeType, true},
	{"SubnetIsFull", "", drover.KindCapacity, drover.ScopeSubnet, false},

	{"*", "regional cores quota", drover.KindQuota, drover.ScopeAll, true},
	{"*", "cores quota", drover.KindQuota, drover.ScopeQuotaGroup, true},
	{"QuotaExceeded", "", drover.KindQuota, drover.ScopeQuotaGroup, true},
	{"OperationNotAllowed", "quota", drover.KindQuota, drover.ScopeQuotaGroup, true},
	{"*CountLimitReached", "", drover.KindQuota, drover.ScopeAll, false},
	{"ResourceQuotaExceeded", "", drover.KindQuota, drover.ScopeAll, false},

	{"HTTP 429", "", drover.KindRateLimit, "", false},
	{"TooManyRequests", "", drover.KindRateLimit, "", false},
	{"SubscriptionRequestsThrottled", "", drover.KindRateLimit, "", false},
	{"ResourceRequestsThrottled", "", drover.KindRateLimit, "", false},
	{"ResourceCollectionRequestsThrottled", "", drover.KindRateLimit, "", false},
	{"RateLimiting", "", drover.KindRateLimit, "", false},

	{"AuthorizationFailed", "", drover.KindAuthentication, "", false},
	{"LinkedAuthorizationFailed", "", drover.KindAuthentication, "", false},
	{"AccessDenied", "", drover.KindAuthentication, "", false},
	{"BadRequest", "novalidsubscriptionsinqueryrequest", drover.KindAuthentication, "", false},
	{"AuthenticationFailed", "", drover.KindAuthentication, "", false},
	{"InvalidAuthenticationToken*", "", drover.KindAuthentication, "", false},
	{"ExpiredAuthenticationToken", "", drover.KindAuthentication, "", false},
	{"SubscriptionNotFound", "", drover.KindAuthentication, "", false},
	{"ReadOnlyDisabledSubscription", "", drover.KindAuthentication, "", false},
	{"VMStoppedToWarnSubscription", "", drover.KindAuthentication, "", false},
	{"MissingSubscriptionRegistration", "", drover.KindAuthentication, "", false},
	{"MissingRegistrationForLocation", "", drover.KindAuthentication, "", false},
	{"SubscriptionNotRegistered", "", drover.KindAuthentication, "", false},
	{"InvalidSubscriptionRegistrationState", "", drover.KindAuthentication, "", false},
	{"ScopeLocked", "", drover.KindAuthentication, "", false},
	{"SubscriptionNotAuthorizedForImage", "", drover.KindAuthentication, "", false},
	{"MarketplacePurchaseEligibilityFailed", "", drover.KindAuthentication, "", false},
	{"ResourcePurchaseValidationFailed", "", drover.KindAuthentication, "", false},
	{"HTTP 401", "", drover.KindAuthentication, "", false},
	{"HTTP 403", "", drover.KindAuthentication, "", false},

	{"ResourceNotFound", "", drover.KindNotFound, "", false},
	{"ResourceGroupNotFound", "", drover.KindNotFound, "", false},
	{"ParentResourceNotFound", "", drover.KindNotFound, "", false},
	{"VMNotFound", "", drover.KindNotFound, "", false},
	{"NotFound", "", drover.KindNotFound, "", false},
	{"ImageNotFound", "", drover.KindNotFound, "", false},
	{"PlatformImageNotFound", "", drover.KindNotFound, "", false},
	{"GalleryImageNotFound", "", drover.KindNotFound, "", false},
	{"HTTP 404", "", drover.KindNotFound, "", false},

	{"PreconditionFailed", "", drover.KindConflict, "", false},
	{"HTTP 412", "", drover.KindConflict, "", false},

	{"OperationNotAllowed", "marked for deletion", drover.KindNotFound, "", false},
	{"OperationNotAllowed", "operation is in progress", drover.KindTransient, "", false},
	{"OperationNotAllowed", "ongoing operation", drover.KindTransient, "", false},
	{"OperationNotAllowed", "", drover.KindUnsupported, "", false},
	{"BadRequest", "hypervisor generation", drover.KindUnsupported, "", false},
	{"BadRequest", "is not supported", drover.KindUnsupported, "", false},
	{"InvalidParameter", "is not supported", drover.KindUnsupported, "", false},
	{"InvalidParameter", "is not available in the current", drover.KindUnsupported, "", false},
	{"RequestDisallowedByPolicy", "", drover.KindUnsupported, "", false},
	{"AzureSpot*", "", drover.KindUnsupported, "", false},
	{"RegionDoesNotAllowProvisioning", "", drover.KindUnsupported, "", false},
	{"NotSupported", "", drover.KindUnsupported, "", false},
	{"NoRegisteredProviderFound", "", drover.KindUnsupported, "", false},
	{"LocationNotAvailableForResourceType", "", drover.KindUnsupported, "", false},
	{"AvailabilityZoneNotSupported", "", drover.KindUnsupported, "", false},

	{"Conflict", "", drover.KindTransient, "", false},
	{"AnotherOperationInProgress", "", drover.KindTransient, "", false},
	{"ResourceGroupBeingDeleted", "", drover.KindTransient, "", false},
	{"OperationPreempted", "", drover.KindTransient, "", false},
	{"NicReservedForAnotherVm", "", drover.KindTransient, "", false},
	{"DiskImageNotReady", "", drover.KindTransient, "", false},
	{"NicInUse", "", drover.KindTransient, "", false},
	{"PublicIPAddressCannotBeDeleted", "", drover.KindTransient, "", false},
	{"RetryableError*", "", drover.KindTransient, "", false},
	{"InternalExecutionError", "", drover.KindTransient, "", false},
	{"InternalServerError", "", drover.KindTransient, "", false},
	{"InternalOperationError", "", drover.KindTransient, "", false},
	{"InternalDiskManagementError", "", drover.KindTransient, "", false},
	{"NetworkingInternalOperationError", "", drover.KindTransient, "", false},
	{"VMStartTimedOut", "", drover.KindTransient, "", false},
	{"ResourceUpdateBlockedOnPlatformUpdate", "", drover.KindTransient, "", false},
	{"OSProvisioning*", "", drover.KindTransient, "", false},
	{"ServerTimeout", "", drover.KindTransient, "", false},
	{"ServiceUnavailable", "", drover.KindTransient, "", false},

	{"Invalid*", "", drover.KindInvalid, "", false},
	{"BadRequest", "", drover.KindInvalid, "", false},
	{"PropertyChangeNotAllowed", "", drover.KindInvalid, "", false},
	{"ConflictingUserInput", "", drover.KindInvalid, "", false},
	{"VMMarketplaceInvalidInput", "", drover.KindInvalid, "", false},
	{"HTTP 400", "", drover.KindInvalid, "", false},
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
		if driver.Like(strings.ToLower(c.code), said) && strings.Contains(message, c.says) {
			return c
		}
	}
	return class{code: code, kind: drover.KindTransient}
}

// kindOf is the kind of an error of Azure's.
func kindOf(err error) drover.ErrorKind {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return ""
	}
	return classOf(said(answer)).kind
}

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
	if told, done := driver.Classed(doing, err); done {
		return told
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
	}
	code, message := said(answer)
	e := refusal(doing, market, code, message)
	if r := answer.RawResponse; r != nil {
		if wait := cmp.Or(driver.RetryAfter(r.Header, time.Now()), quotaAfter(r.Header)); wait > 0 {
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

// owned reports whether something was not taken away because something else has it.
func owned(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	code, message := said(answer)
	return slices.Contains([]string{"NicInUse", "PublicIPAddressCannotBeDeleted", "InUsePublicIPAddressCannotBeDeleted"}, code) ||
		code == "OperationNotAllowed" && strings.Contains(message, "attached")
}
