package ec2

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/smithy-go"

	"drover"
	"drover/driver/kit"
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
var classes = slices.Concat(
	rows(class{kind: drover.KindCapacity, scope: drover.ScopeType},
		"InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity", "InsufficientCapacityOnHost",
		"UnavailableHostRequirements", "InsufficientReservedInstanceCapacity", "ReservationCapacityExceeded", "UnfulfillableCapacity",
		"SpotMaxPriceTooLow"),
	rows(class{kind: drover.KindCapacity, scope: drover.ScopeSubnet}, "InsufficientFreeAddressesInSubnet"),
	rows(class{kind: drover.KindCapacity, scope: drover.ScopeZone}, "InsufficientVolumeCapacity"),
	rows(class{kind: drover.KindQuota, scope: drover.ScopeQuotaGroup}, "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"),
	rows(class{kind: drover.KindQuota, scope: drover.ScopeType}, "InstanceLimitExceeded"),
	rows(class{kind: drover.KindQuota, scope: drover.ScopeAll},
		"MaxFleetCountExceeded", "MaxSpotFleetRequestCountExceeded", "VolumeLimitExceeded", "VolumeModificationSizeLimitExceeded",
		"MaxIOPSLimitExceeded", "NetworkInterfaceLimitExceeded", "KeyPairLimitExceeded", "MaxTemplateLimitExceeded", "ResourceLimitExceeded",
		"PendingVerification"),
	rows(class{kind: drover.KindRateLimit},
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "EC2ThrottledException", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException"),
	rows(class{kind: drover.KindAuthentication},
		"AuthFailure", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "UnauthorizedOperation", "AccessDenied", "AccessDeniedException",
		"Blocked", "AccountDisabled", "OptInRequired", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidSecurity.RequestHasExpired",
		"InvalidClientTokenId", "InvalidSignatureException", "UnrecognizedClientException", "SignatureDoesNotMatch", "MissingAuthenticationToken",
		"IncompleteSignature", "CustomerKeyHasBeenRevoked"),
	rows(class{kind: drover.KindNotFound},
		"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound",
		"InvalidKeyPair.NotFound", "InvalidVolume.NotFound", "InvalidNetworkInterfaceID.NotFound", "ParameterNotFound"),
	rows(class{kind: drover.KindConflict},
		"InvalidLaunchTemplateName.AlreadyExistsException", "InvalidKeyPair.Duplicate", "IdempotentParameterMismatch"),
	rows(class{kind: drover.KindUnsupported},
		"Unsupported", "UnsupportedOperation", "UnsupportedInstanceAttribute", "UnsupportedTenancy", "VolumeTypeNotAvailableInZone",
		"EncryptedVolumesNotSupported", "AttachmentLimitExceeded", "VolumeModificationRateExceeded", "IncorrectModificationState"),
	rows(class{kind: drover.KindTransient},
		"IncorrectInstanceState", "IncorrectState", "InvalidInstanceState", "InvalidState", "DependencyViolation", "VolumeInUse",
		"ConcurrentTagAccess", "InternalError", "InternalFailure", "ServerInternal", "RetryableError", "ServiceUnavailable", "Unavailable"),
	rows(class{kind: drover.KindInvalid},
		"IdempotentInstanceTerminated", "TagLimitExceeded", "TagPolicyViolation", "OperationNotPermitted", "ResourceCountExceeded",
		"SecurityGroupsPerInterfaceLimitExceeded", "VPCIdNotSpecified", "BootForVolumeTypeUnsupported", "UnknownVolumeType", "UnknownParameter",
		"ValidationError", "ValidationException", "Invalid*", "Missing*", "Malformed*"),
)

// rows are classes that differ only in the code.
func rows(of class, codes ...string) (all []class) {
	for _, of.code = range codes {
		all = append(all, of)
	}
	return all
}

// hints are what a person can do about an error of a kind.
var hints = map[drover.ErrorKind]string{
	drover.KindAuthentication: "see the policy that this driver needs in docs/clouds/ec2.md, and the credentials that the AWS tools would use here",
	drover.KindQuota:          "ask for more in the AWS console, under Service Quotas",
}

// classOf finds the row of an error code.
func classOf(code string) class {
	for _, c := range classes {
		if kit.MatchGlob(c.code, code) {
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

// kindOf is the kind of an error of the cloud's.
func kindOf(err error) drover.ErrorKind { return classOf(codeOf(err)).kind }

// classify gives an error of the cloud's a kind.
func classify(doing string, err error) error {
	if told, done := kit.Classed(doing, err); done {
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
