package hetzner

import (
	"errors"
	"slices"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver/kit"
)

// again is the wait after a rate limit: a project gains one request a second, and others use it, too.
const again = 2 * time.Second

// errs is the table of errors, from "Errors" and "POST /servers" in the API's reference
// (https://docs.hetzner.cloud/reference/cloud#errors). docs/clouds/hetzner.md shows it.
var errs = kit.Errors{
	Market: drover.OnDemand, ByName: true, Read: read, Again: kit.In(again),
	Table: slices.Concat(
		kit.Means(drover.KindCapacity, drover.ScopeType, "resource_unavailable", "placement_error"),
		kit.Means(drover.KindCapacity, drover.ScopeZone, "no_space_left_in_location"),
		kit.Means(drover.KindCapacity, drover.ScopeAll, "no_subnet_available", "ip_not_available"),
		kit.Means(drover.KindQuota, drover.ScopeQuotaGroup, "resource_limit_exceeded: dedicated core limit"),
		kit.Means(drover.KindQuota, drover.ScopeAll, "resource_limit_exceeded"),
		kit.Means(drover.KindRateLimit, "", "rate_limit_exceeded"),
		kit.Means(drover.KindAuthentication, "", "unauthorized", "forbidden", "token_readonly"),
		kit.Means(drover.KindNotFound, "", "not_found"),
		kit.Means(drover.KindConflict, "", "uniqueness_error"),
		kit.Means(drover.KindUnsupported, "", "invalid_input: unsupported location", "invalid_server_type", "unsupported_error", "deprecated_api_endpoint"),
		kit.Means(drover.KindInvalid, "", "invalid_input", "json_error"),
		kit.Means(drover.KindInvalid, "", "protected").WithHint("turn off its protection in Hetzner's console"),
		kit.Means(drover.KindInvalid, "", "resource_locked").WithHint("ask Hetzner's support why it is locked"),
		kit.Means(drover.KindInvalid, "", "incompatible_network_type", "firewall_resource_not_found", "private_net_only_server"),
		kit.Means(drover.KindTransient, "", "locked", "conflict", "maintenance", "server_error", "service_error", "unavailable", "bad_gateway",
			"timeout", "unknown_error"),
	),
	Hints: map[drover.ErrorKind]string{
		drover.KindAuthentication: "create a token with read and write access in Hetzner's console, under Security, API tokens",
		drover.KindQuota:          "request a higher limit in Hetzner's console, under Limits",
	},
}

// read extracts the API's answer from an error.
func read(err error) (a kit.Answer, ok bool) {
	var told hcloud.Error
	ok = errors.As(err, &told)
	return kit.Answer{Code: string(told.Code), Message: told.Message}, ok
}
