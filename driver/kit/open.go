// Package kit is what drivers share, so that each is the same where its cloud is, and small.
//
// The parts, in the order in which a driver needs them: Begin reads the configuration, into which TypeKeys and MarketKeys are embedded; Errors is the
// table of errors; Gate, RateLimiter and Transport keep every call to a published rate and count it; TypeKeys.Offerings puts types by hand beside the
// cloud's own; CheckRequest, UserData and Names are for creating; Labels and Escaped write tags where a cloud takes less; Collect reads pages to the end.
//
// Nothing here knows a cloud, waits, or tries again.
package kit

import (
	"log/slog"

	"drover"
	"drover/driver"
)

// Begin does what opening any cloud begins with: it refuses a fleet's id that is not up to so many letters, digits and dashes, sees to it that
// there is a log, and reads the driver's own keys of the configuration into own, whose Default and Check have their say.
func Begin(o *driver.Options, longest int, own any) error {
	if len(o.Fleet) > longest || !plain(o.Fleet) {
		return drover.Errorf(drover.KindInvalid, "open cloud %s: %q is not a fleet id: up to %d letters, digits and dashes", o.Name, o.Fleet, longest)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Decode != nil {
		return o.Decode(own)
	}
	if d, can := own.(interface{ Default() }); can {
		d.Default()
	}
	return nil
}

// plain reports whether a text is letters, digits and dashes, and at least one.
func plain(text string) bool {
	for _, c := range []byte(text) {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != ""
}
