package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"drover"
	"drover/driver/kit"
)

// limitedFor is the wait after a rate limit for which Azure names no time.
const limitedFor = 30 * time.Second

// errs is the table of error codes. Rate limits have one status and many codes, some of which also mean other things,
// so their row comes early. Only the network's code for an interface in use, which has the same status, comes
// before it. docs/clouds/azure.md shows the table with what each code means.
var errs = kit.Errors{
	ByName: true, Read: read, Again: kit.In(limitedFor),
	Table: slices.Concat(
		kit.Means(drover.KindTransient, "", "RetryableError*"),
		kit.Means(drover.KindRateLimit, "", "429"),
		kit.Means(drover.KindCapacity, drover.ScopeType,
			"AllocationFailed", "ZonalAllocationFailed", "OverconstrainedAllocationRequest", "OverconstrainedZonalAllocationRequest", "SkuNotAvailable", "SpotPriceGreaterThanProvidedMaxPrice"),
		kit.Means(drover.KindCapacity, drover.ScopeSubnet, "SubnetIsFull"),

		kit.Means(drover.KindQuota, drover.ScopeAll, "*: regional cores quota").OfMarket(),
		kit.Means(drover.KindQuota, drover.ScopeQuotaGroup, "*: cores quota", "QuotaExceeded", "OperationNotAllowed: quota"),
		kit.Means(drover.KindQuota, drover.ScopeAll, "*CountLimitReached", "ResourceQuotaExceeded"),

		kit.Means(drover.KindRateLimit, "",
			"TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled", "ResourceCollectionRequestsThrottled", "RateLimiting"),
		kit.Means(drover.KindAuthentication, "",
			"AuthorizationFailed", "LinkedAuthorizationFailed", "AccessDenied", "BadRequest: novalidsubscriptionsinqueryrequest", "AuthenticationFailed", "InvalidAuthenticationToken*",
			"ExpiredAuthenticationToken"),
		kit.Means(drover.KindAuthentication, "", "SubscriptionNotFound", "ReadOnlyDisabledSubscription", "VMStoppedToWarnSubscription").
			WithHint("az account list --all shows the state and the tenant of each subscription"),
		kit.Means(drover.KindAuthentication, "",
			"MissingSubscriptionRegistration", "MissingRegistrationForLocation", "SubscriptionNotRegistered", "InvalidSubscriptionRegistrationState").
			WithHint("run az provider register --namespace Microsoft.Compute, and once more with Microsoft.Network"),
		kit.Means(drover.KindAuthentication, "", "ScopeLocked").WithHint("remove the lock that az lock list shows"),
		kit.Means(drover.KindAuthentication, "", "SubscriptionNotAuthorizedForImage", "MarketplacePurchaseEligibilityFailed", "ResourcePurchaseValidationFailed").
			WithHint("accept the image's terms with az vm image terms accept, or use another image"),
		kit.Means(drover.KindNotFound, "",
			"ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound", "VMNotFound", "NotFound", "ImageNotFound", "PlatformImageNotFound", "GalleryImageNotFound",
			"OperationNotAllowed: marked for deletion"),
		kit.Means(drover.KindConflict, "", "PreconditionFailed", "NicInUse", "PublicIPAddressCannotBeDeleted", "OperationNotAllowed: is attached to"),
		kit.Means(drover.KindTransient, "", "OperationNotAllowed: operation is in progress", "OperationNotAllowed: ongoing operation"),
		kit.Means(drover.KindUnsupported, "",
			"OperationNotAllowed", "BadRequest: hypervisor generation", "BadRequest: is not supported", "InvalidParameter: is not supported",
			"VMSizeIsNotPermitted*", "NotSupported", "RequestDisallowedBy*", "AzureSpot*", "RegionDoesNotAllowProvisioning",
			"InvalidParameter: is not available in the current", "NoRegisteredProviderFound", "LocationNotAvailableForResourceType",
			"AvailabilityZoneNotSupported"),
		kit.Means(drover.KindTransient, "",
			"Conflict", "AnotherOperationInProgress", "OperationPreempted", "ResourceGroupBeingDeleted", "NicReservedForAnotherVm", "DiskImageNotReady",
			"OSProvisioning*", "InternalExecutionError", "InternalServerError", "InternalOperationError", "InternalDiskManagementError",
			"NetworkingInternalOperationError", "VMStartTimedOut", "ResourceUpdateBlockedOnPlatformUpdate", "ServerTimeout", "ServiceUnavailable"),
		kit.Means(drover.KindInvalid, "", "Invalid*", "BadRequest", "PropertyChangeNotAllowed", "ConflictingUserInput", "VMMarketplaceInvalidInput"),

		kit.Means(drover.KindAuthentication, "", "401", "403"),
		kit.Means(drover.KindNotFound, "", "404"),
		kit.Means(drover.KindConflict, "", "412"),
		kit.Means(drover.KindInvalid, "", "400"),
	),
	Hints: map[drover.ErrorKind]string{
		drover.KindAuthentication: "compare the roles in docs/clouds/azure.md with those of the account that az account show prints",
		drover.KindQuota:          "request a higher quota in the Azure portal, under Quotas; az vm list-usage shows the current limits",
	},
}

// read extracts Azure's answer from an error, with its details.
func read(err error) (a kit.Answer, ok bool) {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return a, false
	}
	a = kit.Answer{Status: answer.StatusCode, Code: answer.ErrorCode}
	if answer.RawResponse == nil {
		return a, true
	}
	var body struct {
		Error struct {
			Code, Message string
			Details       []struct{ Code, Message string }
		} `json:"error"`
	}
	if text, err := runtime.Payload(answer.RawResponse); err == nil && json.Unmarshal(text, &body) == nil {
		a.Code, a.Message = cmp.Or(a.Code, body.Error.Code), body.Error.Message
		for _, d := range body.Error.Details {
			a.Message += fmt.Sprintf("; %s: %s", d.Code, d.Message)
		}
	}
	if a.Status == http.StatusNotFound && a.Code == "" && a.Message == "" {
		a = kit.Foreign404("Azure")
	}
	header := answer.RawResponse.Header
	a.Retry = cmp.Or(kit.RetryAfter(header, time.Now()), quotaAfter(header))
	return a, true
}

// quotaAfter returns the wait that Azure Resource Graph requests in its own header, such as 00:00:05.
func quotaAfter(h http.Header) time.Duration {
	var hours, minutes, seconds time.Duration
	if n, _ := fmt.Sscanf(h.Get("x-ms-user-quota-resets-after"), "%d:%d:%d", &hours, &minutes, &seconds); n < 3 {
		return 0
	}
	return min(max(0, hours*time.Hour+minutes*time.Minute+seconds*time.Second), time.Hour)
}
