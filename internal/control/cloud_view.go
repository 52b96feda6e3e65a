package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/engine"
)

// cloud is an open cloud.
type cloud struct {
	Cloud
	own *middleware.FleetCloud // its Driver, restricted to this fleet's instances
	*cloudView
}

// cloudView is what was observed of a cloud: its last good list, later creations, and its catalogue. It survives a
// change of the cloud's configuration, since the engine receives only differences.
type cloudView struct {
	mu      sync.Mutex
	seen    map[string]driver.Instance // by provider ID; guarded by mu
	listed  bool                       // seen is a good list; guarded by mu
	created map[string]driver.Instance // not listed yet; guarded by mu
	missing []driver.Instance          // the last instances that disappeared from lists; guarded by mu
	offered []drover.Offering          // the last catalogue sent to the engine; never changed; guarded by mu
	told    string                     // its hash; guarded by mu
	leftOut []drover.LeftOut           // excluded by the configuration; never changed; guarded by mu
}

// replace sets the last good list, and returns the differences from the previous one in a stable order. An instance
// also counts as added if it has started or stopped, or if the cloud now interrupts it or fails to create it.
func (cl *cloudView) replace(all map[string]driver.Instance) (added []driver.Instance, removed []string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for id, in := range all {
		old, ok := cl.seen[id]
		if !ok || !cl.listed || differs(old, in) {
			added = append(added, in)
		}
	}
	for id, in := range cl.seen {
		if _, ok := all[id]; !ok {
			removed = append(removed, id)
			cl.miss(in)
		}
	}
	cl.seen, cl.listed = all, true
	for id := range all {
		delete(cl.created, id)
	}
	slices.SortFunc(added, func(a, b driver.Instance) int {
		return cmp.Or(strings.Compare(a.Tags[driver.TagName], b.Tags[driver.TagName]), strings.Compare(a.ID, b.ID))
	})
	slices.Sort(removed)
	return added, removed
}

// differs reports whether an instance changed in a way that matters to the engine.
func differs(old, in driver.Instance) bool {
	is := func(in driver.Instance, s driver.State) bool { return in.State == s }
	return is(old, driver.Stopped) != is(in, driver.Stopped) || is(old, driver.Stopping) != is(in, driver.Stopping) ||
		old.Reclaimed != in.Reclaimed || (old.Failed == nil) != (in.Failed == nil) || old.Addresses != in.Addresses || old.Ended != in.Ended
}

// miss remembers an instance that is gone. The caller holds mu.
func (cl *cloudView) miss(in driver.Instance) {
	cl.missing = append(cl.missing, in)
	cl.missing = cl.missing[max(0, len(cl.missing)-maxMissing):]
}

// forget drops what a create call returned of an instance that is gone: no list may ever have had a short-lived one.
func (cl *cloudView) forget(id string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if in, ok := cl.created[id]; ok {
		delete(cl.created, id)
		cl.miss(in)
	}
}

// maxMissing is how many gone instances are remembered, for hooks.
const maxMissing = 1000

// recall returns the last observation of an instance, present or gone.
func (cl *cloudView) recall(id string) (driver.Instance, bool) {
	if in, ok := cl.find(id); ok {
		return in, true
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, in := range slices.Backward(cl.missing) {
		if in.ID == id {
			return in, true
		}
	}
	return driver.Instance{}, false
}

// remember keeps what a create call returned until a list has the instance too. The next list still counts it as new.
func (cl *cloudView) remember(in driver.Instance) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.created[in.ID] = in
}

// find returns what is known of an instance, from the last list or otherwise its create call.
func (cl *cloudView) find(id string) (driver.Instance, bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if in, ok := cl.seen[id]; ok {
		return in, true
	}
	in, ok := cl.created[id]
	return in, ok
}

// wasListed reports whether there was a good list: then the cloud does not have unknown instances.
func (cl *cloudView) wasListed() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.listed
}

// update changes what is known about an instance. It does nothing if the instance is unknown.
func (cl *cloudView) update(id string, change func(*driver.Instance)) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, known := range []map[string]driver.Instance{cl.seen, cl.created} {
		if in, ok := known[id]; ok {
			change(&in)
			known[id] = in
		}
	}
}

// maxPrice limits the hourly price in a tag: anyone who may tag an instance could write anything there.
const maxPrice = 1_000_000 * drover.Dollar

// sighting converts a listed instance for the engine. Its tags come from outside: an impossible price is dropped, and
// text is sanitized so that a recording reproduces it.
func sighting(in driver.Instance) engine.Sighting {
	tag := func(name string) string { return strings.ToValidUTF8(in.Tags[name], "\uFFFD") }
	price, err := strconv.ParseInt(tag(driver.TagPrice), 10, 64)
	if err != nil || price < 0 || drover.Money(price) > maxPrice {
		price = 0
	}
	stopped, _ := time.Parse(time.RFC3339, tag(driver.TagStopped)) // Drover stopped it then; the zero time if it did not
	return engine.Sighting{
		ProviderID:   in.ID,
		Name:         tag(driver.TagName),
		ProviderType: in.ProviderType,
		Type:         tag(driver.TagType),
		Zone:         in.Zone,
		Market:       in.Market,
		HostKey:      tag(driver.TagHostKey),
		Price:        drover.Money(price),
		Idle:         drover.IdleBehavior(tag(driver.TagIdle)),
		Owner:        tag(driver.TagOwner),
		Pool:         tag(driver.TagPool),
		Template:     tag(driver.TagMade),
		Created:      in.Created,
		Addresses:    addresses(in.Addresses),
		Ending:       in.State == driver.Stopping,
		Stopped:      in.State == driver.Stopped,
		Kept:         drover.TimeOf(stopped),
		Reclaimed:    in.Reclaimed,
		Failed:       in.Failed,
		Ended:        in.Ended,
	}
}

// maxAddress is longer than any address.
const maxAddress = 300

// addresses drops addresses that cannot be recorded and dialled.
func addresses(a driver.Addresses) driver.Addresses {
	for _, text := range []*string{&a.Private, &a.Public, &a.User} {
		if len(*text) > maxAddress || !utf8.ValidString(*text) {
			*text = ""
		}
	}
	return a
}
