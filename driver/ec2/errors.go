package ec2

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go"

	"drover"
	"drover/driver"
)

// limitedFor is how long a call is left alone that the cloud refused for its rate: it does not say when the next may be made, and at the
// slowest of the published rates, two a second, a few have been earned by then.
const limitedFor = 2 * time.Second

// class is what an error code means.
type class struct {
	code  string // a * at its end stands for any text
	kind  drover.ErrorKind
	scope drover.Scope
}

// classes is the one table of error codes. The first row that fits counts; a code that none fits tells nothing. It is shown, with what each
// code means, in docs/clouds/ec2.md.
var classes = []class{
	{"InsufficientInstanceCapacity", drover.KindCapacity, drover.ScopeType},
	{"InsufficientCapacity", drover.KindCapacity, drover.ScopeType},
	{"InsufficientHostCapacity", drover.KindCapacity, drover.ScopeType},
	{"InsufficientCapacityOnHost", drover.KindCapacity, drover.ScopeType},
	{"UnavailableHostRequirements", drover.KindCapacity, drover.ScopeType},
	{"InsufficientReservedInstanceCapacity", drover.KindCapacity, drover.ScopeType},
	{"ReservationCapacityExceeded", drover.KindCapacity, drover.ScopeType},
	{"UnfulfillableCapacity", drover.KindCapacity, drover.ScopeType},
	{"SpotMaxPriceTooLow", drover.KindCapacity, drover.ScopeType},
	{"InsufficientFreeAddressesInSubnet", drover.KindCapacity, drover.ScopeSubnet},
	{"InsufficientVolumeCapacity", drover.KindCapacity, drover.ScopeZone},

	{"VcpuLimitExceeded", drover.KindQuota, drover.ScopeQuotaGroup},
	{"MaxSpotInstanceCountExceeded", drover.KindQuota, drover.ScopeQuotaGroup},
	{"InstanceLimitExceeded", drover.KindQuota, drover.ScopeType},
	{"MaxFleetCountExceeded", drover.KindQuota, drover.ScopeAll},
	{"MaxSpotFleetRequestCountExceeded", drover.KindQuota, drover.ScopeAll},
	{"VolumeLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"VolumeModificationSizeLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"MaxIOPSLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"NetworkInterfaceLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"KeyPairLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"MaxTemplateLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"ResourceLimitExceeded", drover.KindQuota, drover.ScopeAll},
	{"PendingVerification", drover.KindQuota, drover.ScopeAll},

	{"RequestLimitExceeded", drover.KindRateLimit, ""},
	{"Throttling", drover.KindRateLimit, ""},
	{"ThrottlingException", drover.KindRateLimit, ""},
	{"ThrottledException", drover.KindRateLimit, ""},
	{"EC2ThrottledException", drover.KindRateLimit, ""},
	{"RequestThrottled", drover.KindRateLimit, ""},
	{"RequestThrottledException", drover.KindRateLimit, ""},
	{"TooManyRequestsException", drover.KindRateLimit, ""},

	{"AuthFailure", drover.KindAuthentication, ""},
	{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", drover.KindAuthentication, ""},
	{"UnauthorizedOperation", drover.KindAuthentication, ""},
	{"AccessDenied", drover.KindAuthentication, ""},
	{"AccessDeniedException", drover.KindAuthentication, ""},
	{"Blocked", drover.KindAuthentication, ""},
	{"AccountDisabled", drover.KindAuthentication, ""},
	{"OptInRequired", drover.KindAuthentication, ""},
	{"ExpiredToken", drover.KindAuthentication, ""},
	{"ExpiredTokenException", drover.KindAuthentication, ""},
	{"RequestExpired", drover.KindAuthentication, ""},
	{"InvalidSecurity.RequestHasExpired", drover.KindAuthentication, ""},
	{"InvalidClientTokenId", drover.KindAuthentication, ""},
	{"InvalidSignatureException", drover.KindAuthentication, ""},
	{"UnrecognizedClientException", drover.KindAuthentication, ""},
	{"SignatureDoesNotMatch", drover.KindAuthentication, ""},
	{"MissingAuthenticationToken", drover.KindAuthentication, ""},
	{"IncompleteSignature", drover.KindAuthentication, ""},
	{"CustomerKeyHasBeenRevoked", drover.KindAuthentication, ""},

	{"InvalidInstanceID.NotFound", drover.KindNotFound, ""},
	{"InvalidInstanceID.Malformed", drover.KindNotFound, ""},
	{"InvalidLaunchTemplateName.NotFoundException", drover.KindNotFound, ""},
	{"InvalidLaunchTemplateId.NotFound", drover.KindNotFound, ""},
	{"InvalidKeyPair.NotFound", drover.KindNotFound, ""},
	{"InvalidVolume.NotFound", drover.KindNotFound, ""},
	{"InvalidNetworkInterfaceID.NotFound", drover.KindNotFound, ""},
	{"ParameterNotFound", drover.KindNotFound, ""},

	{"InvalidLaunchTemplateName.AlreadyExistsException", drover.KindConflict, ""},
	{"InvalidKeyPair.Duplicate", drover.KindConflict, ""},
	{"IdempotentParameterMismatch", drover.KindConflict, ""},

	{"Unsupported", drover.KindUnsupported, ""},
	{"UnsupportedOperation", drover.KindUnsupported, ""},
	{"UnsupportedInstanceAttribute", drover.KindUnsupported, ""},
	{"UnsupportedTenancy", drover.KindUnsupported, ""},
	{"VolumeTypeNotAvailableInZone", drover.KindUnsupported, ""},
	{"EncryptedVolumesNotSupported", drover.KindUnsupported, ""},
	{"AttachmentLimitExceeded", drover.KindUnsupported, ""},
	{"VolumeModificationRateExceeded", drover.KindUnsupported, ""},
	{"IncorrectModificationState", drover.KindUnsupported, ""},

	{"IncorrectInstanceState", drover.KindTransient, ""},
	{"IncorrectState", drover.KindTransient, ""},
	{"InvalidInstanceState", drover.KindTransient, ""},
	{"InvalidState", drover.KindTransient, ""},
	{"DependencyViolation", drover.KindTransient, ""},
	{"VolumeInUse", drover.KindTransient, ""},
	{"ConcurrentTagAccess", drover.KindTransient, ""},
	{"InternalError", drover.KindTransient, ""},
	{"InternalFailure", drover.KindTransient, ""},
	{"ServerInternal", drover.KindTransient, ""},
	{"RetryableError", drover.KindTransient, ""},
	{"ServiceUnavailable", drover.KindTransient, ""},
	{"Unavailable", drover.KindTransient, ""},

	{"IdempotentInstanceTerminated", drover.KindInvalid, ""},
	{"TagLimitExceeded", drover.KindInvalid, ""},
	{"TagPolicyViolation", drover.KindInvalid, ""},
	{"OperationNotPermitted", drover.KindInvalid, ""},
	{"ResourceCountExceeded", drover.KindInvalid, ""},
	{"SecurityGroupsPerInterfaceLimitExceeded", drover.KindInvalid, ""},
	{"VPCIdNotSpecified", drover.KindInvalid, ""},
	{"BootForVolumeTypeUnsupported", drover.KindInvalid, ""},
	{"UnknownVolumeType", drover.KindInvalid, ""},
	{"UnknownParameter", drover.KindInvalid, ""},
	{"ValidationError", drover.KindInvalid, ""},
	{"ValidationException", drover.KindInvalid, ""},
	{"Invalid*", drover.KindInvalid, ""},
	{"Missing*", drover.KindInvalid, ""},
	{"Malformed*", drover.KindInvalid, ""},
}

// hints are what a person can do about an error of a kind.
var hints = map[drover.ErrorKind]string{
	drover.KindAuthentication: "see the policy that this driver needs in docs/clouds/ec2.md, and the credentials that the AWS tools would use here",
	drover.KindQuota:          "ask for more in the AWS console, under Service Quotas",
}

// classOf finds the row of an error code.
func classOf(code string) class {
	for _, c := range classes {
		if driver.Like(c.code, code) {
			return c
		}
	}
	return class{code, drover.KindTransient, ""}
}

// codeOf is the cloud's code of an error, empty if the cloud has not answered.
func codeOf(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

// classify gives an error of the cloud's a kind.
func classify(doing string, err error) error {
	if told, done := driver.Classed(doing, err); done {
		return told
	}
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
	}
	return refusal(doing, answer.ErrorCode(), answer.ErrorMessage())
}

// refusal is an error of which the cloud has said the code.
func refusal(doing, code, message string) *drover.Error {
	c := classOf(code)
	e := &drover.Error{Kind: c.kind, Scope: c.scope, Hint: hints[c.kind], Message: fmt.Sprintf("%s: %s: %s", doing, code, cmp.Or(message, "no more was said"))}
	if c.kind == drover.KindRateLimit {
		e.RetryAt = drover.TimeOf(time.Now().Add(limitedFor))
	}
	return e
}

// ofMarket is an error of what was asked for in a market. Types and quotas of vCPUs are each market's own; what else is lacking is so in both.
func ofMarket(m drover.Market, err error) *drover.Error {
	e := drover.AsError(err, drover.KindTransient)
	if e.Scope == drover.ScopeType || e.Scope == drover.ScopeQuotaGroup {
		e.Market = m
	}
	return e
}
