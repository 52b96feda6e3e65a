// Package kit is what drivers share. It keeps them small, and similar where their clouds are similar.
//
// In the order in which a driver needs them: Begin reads the configuration, which embeds TypeKeys and MarketKeys;
// Errors classifies errors; Gate, RateLimiter and Transport count calls and keep them within published rates;
// TypeKeys.Offerings merges configured types with the cloud's; Errors.Create, UserData and Names help to create;
// Labels and Escaped write tags where a cloud is strict; Collect reads all pages.
//
// Nothing here is specific to a cloud, waits, or retries.
package kit

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/diskcache"
)

// Begin is the first step of opening any cloud: it checks that the fleet's id has only letters, digits and dashes and
// is not too long, ensures that there is a log, and decodes the driver's own keys of the configuration into own, with
// its Default and Check.
func Begin(o *driver.Options, longest int, own any) error {
	if len(o.Fleet) > longest || !plain(o.Fleet) {
		return drover.Errorf(drover.KindInvalid, "open cloud %s: %q is not a fleet id (up to %d letters, digits and dashes)", o.Name, o.Fleet, longest)
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

// Keep returns the options with which a driver caches on disk what it fetches; of contains everything on which the
// fetched data depends.
func Keep(o driver.Options, of ...any) func(name string, age time.Duration) diskcache.Options {
	key := strings.TrimSuffix(fmt.Sprintln(of...), "\n")
	return func(name string, age time.Duration) diskcache.Options {
		return diskcache.Options{Folder: o.Folder, Name: name, Key: key, Age: age, Log: o.Log}
	}
}

// plain reports whether a text is not empty and has only letters, digits and dashes.
func plain(text string) bool {
	for _, c := range []byte(text) {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != ""
}
