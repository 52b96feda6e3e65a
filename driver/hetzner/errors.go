package hetzner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver/kit"
)

// class is what an error of the API means.
type class struct {
	code  hcloud.ErrorCode
	says  string // a part of its message; empty: anything
	kind  drover.ErrorKind
	scope drover.Scope
}

// classes are the codes of "Errors" in the API's reference and of "POST /servers" there (https://docs.hetzner.cloud/reference/cloud#errors), as
// docs/clouds/hetzner.md shows them. The first row that fits counts; a code that is in none is transient.
var classes = []class{
	{"resource_unavailable", "", drover.KindCapacity, drover.ScopeType},
	{"placement_error", "", drover.KindCapacity, drover.ScopeType},
	{"no_space_left_in_location", "", drover.KindCapacity, drover.ScopeZone},
	{"no_subnet_available", "", drover.KindCapacity, drover.ScopeAll},
	{"ip_not_available", "", drover.KindCapacity, drover.ScopeAll},
	{"resource_limit_exceeded", "dedicated core limit", drover.KindQuota, drover.ScopeQuotaGroup},
	{"resource_limit_exceeded", "", drover.KindQuota, drover.ScopeAll},
	{"rate_limit_exceeded", "", drover.KindRateLimit, ""},
	{"unauthorized", "", drover.KindAuthentication, ""},
	{"forbidden", "", drover.KindAuthentication, ""},
	{"token_readonly", "", drover.KindAuthentication, ""},
	{"not_found", "", drover.KindNotFound, ""},
	{"uniqueness_error", "", drover.KindConflict, ""},
	{"invalid_input", "", drover.KindInvalid, ""},
	{"json_error", "", drover.KindInvalid, ""},
	{"protected", "", drover.KindInvalid, ""},
	{"resource_locked", "", drover.KindInvalid, ""},
	{"incompatible_network_type", "", drover.KindInvalid, ""},
	{"firewall_resource_not_found", "", drover.KindInvalid, ""},
	{"private_net_only_server", "", drover.KindInvalid, ""},
	{"invalid_server_type", "", drover.KindUnsupported, ""},
	{"unsupported_error", "", drover.KindUnsupported, ""},
	{"deprecated_api_endpoint", "", drover.KindUnsupported, ""},
	{"locked", "", drover.KindTransient, ""},
	{"conflict", "", drover.KindTransient, ""},
	{"maintenance", "", drover.KindTransient, ""},
	{"server_error", "", drover.KindTransient, ""},
	{"service_error", "", drover.KindTransient, ""},
	{"unavailable", "", drover.KindTransient, ""},
	{"bad_gateway", "", drover.KindTransient, ""},
	{"timeout", "", drover.KindTransient, ""},
	{"unknown_error", "", drover.KindTransient, ""},
}

// classOf finds the row of an error.
func classOf(told hcloud.Error) class {
	for _, c := range classes {
		if c.code == told.Code && strings.Contains(told.Message, c.says) {
			return c
		}
	}
	return class{code: told.Code, kind: drover.KindTransient}
}

// again is after how long a request is made again that was beyond the rate: one is earned each second, and others want it, too.
const again = 2 * time.Second

// classify gives an error of the API its class, and says what we were doing.
func classify(doing string, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	var told hcloud.Error
	if !errors.As(err, &told) {
		return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
	}
	c := classOf(told)
	e := &drover.Error{Kind: c.kind, Scope: c.scope, Message: fmt.Sprintf("%s: %v", doing, told)}
	if c.kind == drover.KindQuota || c.kind == drover.KindCapacity {
		e.Market = drover.OnDemand
	}
	if c.kind == drover.KindRateLimit {
		e.RetryAt = drover.TimeOf(time.Now().Add(again))
	}
	return e
}

// is reports whether an error has this code.
func is(err error, code hcloud.ErrorCode) bool { return hcloud.IsError(err, code) }
