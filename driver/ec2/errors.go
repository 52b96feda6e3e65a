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

// limitedFor is the wait after a rate limit: EC2 names no time, and even the slowest published rate, two calls a
// second, allows a few calls by then.
const limitedFor = 2 * time.Second

// errs is the table of error codes. docs/clouds/ec2.md shows it with what each code means.
var errs = kit.Errors{
	Read: read, Again: kit.In(limitedFor),
	Table: slices.Concat(
		kit.Means(drover.KindCapacity, drover.ScopeType,
			"InsufficientInstanceCapacity", "InsufficientCapacity", "UnfulfillableCapacity", "InsufficientHostCapacity", "InsufficientCapacityOnHost",
			"UnavailableHostRequirements", "InsufficientReservedInstanceCapacity", "ReservationCapacityExceeded", "SpotMaxPriceTooLow"),
		kit.Means(drover.KindCapacity, drover.ScopeSubnet, "InsufficientFreeAddressesInSubnet"),
		kit.Means(drover.KindCapacity, drover.ScopeZone, "InsufficientVolumeCapacity"),
		kit.Means(drover.KindQuota, drover.ScopeQuotaGroup, "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"),
		kit.Means(drover.KindQuota, drover.ScopeType, "InstanceLimitExceeded"),
		kit.Means(drover.KindQuota, drover.ScopeAll,
			"MaxFleetCountExceeded", "MaxSpotFleetRequestCountExceeded", "VolumeLimitExceeded", "VolumeModificationSizeLimitExceeded",
			"MaxIOPSLimitExceeded", "NetworkInterfaceLimitExceeded", "KeyPairLimitExceeded", "MaxTemplateLimitExceeded", "ResourceLimitExceeded",
			"PendingVerification"),
		kit.Means(drover.KindRateLimit, "",
			"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "EC2ThrottledException", "RequestThrottled",
			"RequestThrottledException", "TooManyRequestsException"),
		kit.Means(drover.KindAuthentication, "",
			"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "RequestExpired", "InvalidSecurity.RequestHasExpired", "OptInRequired", "Blocked",
			"AccountDisabled", "CustomerKeyHasBeenRevoked", "UnauthorizedOperation", "AuthFailure", "AccessDenied", "AccessDeniedException",
			"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "InvalidSignatureException", "UnrecognizedClientException",
			"SignatureDoesNotMatch", "MissingAuthenticationToken", "IncompleteSignature"),
		kit.Means(drover.KindNotFound, "",
			"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed", "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound",
			"InvalidKeyPair.NotFound", "InvalidVolume.NotFound", "InvalidNetworkInterfaceID.NotFound", "ParameterNotFound"),
		kit.Means(drover.KindConflict, "",
			"InvalidLaunchTemplateName.AlreadyExistsException", "InvalidKeyPair.Duplicate", "IdempotentParameterMismatch"),
		kit.Means(drover.KindUnsupported, "",
			"Unsupported", "UnsupportedOperation", "UnsupportedInstanceAttribute", "UnsupportedTenancy", "VolumeTypeNotAvailableInZone",
			"EncryptedVolumesNotSupported", "AttachmentLimitExceeded", "VolumeModificationRateExceeded", "IncorrectModificationState"),
		kit.Means(drover.KindTransient, "",
			"IncorrectInstanceState", "IncorrectState", "InvalidInstanceState", "InvalidState", "DependencyViolation", "VolumeInUse",
			"ConcurrentTagAccess", "InternalError", "InternalFailure", "ServerInternal", "RetryableError", "ServiceUnavailable", "Unavailable"),
		kit.Means(drover.KindInvalid, "",
			"IdempotentInstanceTerminated", "TagLimitExceeded", "TagPolicyViolation", "OperationNotPermitted", "ResourceCountExceeded",
			"SecurityGroupsPerInterfaceLimitExceeded", "VPCIdNotSpecified", "BootForVolumeTypeUnsupported", "UnknownVolumeType", "UnknownParameter",
			"ValidationError", "ValidationException", "Invalid*", "Missing*", "Malformed*"),
	),
	Hints: map[drover.ErrorKind]string{
		drover.KindAuthentication: "compare the policy in docs/clouds/ec2.md with the permissions of the credentials that the AWS tools would use here",
		drover.KindQuota:          "request an increase in the AWS console, under Service Quotas",
	},
}

// read extracts EC2's answer from an error.
func read(err error) (a kit.Answer, ok bool) {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return a, false
	}
	return kit.Answer{Code: answer.ErrorCode(), Message: answer.ErrorMessage()}, true
}

// refusals merges a fleet's errors about its candidates.
func refusals(m drover.Market, said []fleetItem) *drover.Error {
	var all []*drover.Error
	for _, s := range said {
		doing := fmt.Sprintf("%s in %s", cmp.Or(s.AskedType, "it"), cmp.Or(s.AskedZone, s.AskedSubnet, "any zone"))
		all = append(all, errs.Error(doing, m, kit.Answer{Code: s.Code, Message: s.Message}))
	}
	if len(all) == 0 {
		return drover.Errorf(drover.KindTransient, "EC2 created no instance and gave no reason")
	}
	return kit.MostSevere(all)
}
