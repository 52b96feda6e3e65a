package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
	"drover/internal/remote"
)

// Deadlines of calls to a cloud. Each is generous for a healthy cloud and short enough that a hung call is soon tried again.
const (
	listTimeout     = time.Minute
	createTimeout   = 2 * time.Minute
	destroyTimeout  = time.Minute
	describeTimeout = 30 * time.Second
)

// cloud is an open cloud.
type cloud struct {
	Cloud
	own *middleware.FleetCloud // its Driver, which touches only this fleet's instances
	*cloudView
}

// cloudView is what was observed of a cloud: its last good list, what was created since, and its catalogue. It
// survives a change of the cloud's configuration, since the engine is told differences.
type cloudView struct {
	mu      sync.Mutex
	seen    map[string]driver.Instance // by provider id; guarded by mu
	listed  bool                       // seen is a good list; guarded by mu
	created map[string]driver.Instance // not yet seen; guarded by mu
	missing []driver.Instance          // seen once, and no longer: the last of them; guarded by mu
	offered []drover.Offering          // the catalogue that the engine was told last; never changed; guarded by mu
	told    string                     // its hash; guarded by mu
	leftOut []drover.LeftOut           // what the configuration leaves out of the cloud's list; never changed; guarded by mu
}

// list asks a cloud for this fleet's instances and returns what is new and what is missing since the last good list.
func (c *Controller) list(ctx context.Context, effect int64, f engine.ListInstances) engine.Body {
	began := c.clock.now()
	cl, err := c.cloud(f.Cloud)
	var all map[string]driver.Instance
	if err == nil {
		all, err = c.listFleet(ctx, cl)
	}
	if err != nil {
		return engine.Listed{Effect: effect, Cloud: f.Cloud, Began: began, Err: drover.AsError(err, drover.KindTransient)}
	}
	added, removed := cl.replace(all)
	ev := engine.Listed{Effect: effect, Cloud: f.Cloud, Began: began, Removed: removed}
	for _, in := range added {
		ev.Added = append(ev.Added, sighting(in))
	}
	return ev
}

// listFleet lists the fleet's instances in a cloud, by provider id.
func (c *Controller) listFleet(ctx context.Context, cl *cloud) (map[string]driver.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := cl.own.List(ctx, map[string]string{driver.TagFleet: c.cfg.Fleet})
	all := map[string]driver.Instance{}
	for _, in := range list {
		all[in.ID] = in
	}
	return all, err
}

// replace makes all the last good list, and returns how it differs from the one before, in a stable order. An
// instance also counts as new if it has started or stopped, or if the cloud now takes it back or fails to make it.
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
			cl.missing = append(cl.missing, in)
		}
	}
	cl.missing = cl.missing[max(0, len(cl.missing)-maxMissing):]
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

// differs reports whether a list shows a change of an instance that matters to the engine.
func differs(old, in driver.Instance) bool {
	is := func(in driver.Instance, s driver.State) bool { return in.State == s }
	return is(old, driver.Stopped) != is(in, driver.Stopped) || is(old, driver.Stopping) != is(in, driver.Stopping) ||
		old.Reclaimed != in.Reclaimed || (old.Failed == nil) != (in.Failed == nil) || old.Addresses != in.Addresses || old.Ended != in.Ended
}

// maxMissing is how many gone instances are remembered, for hooks.
const maxMissing = 1000

// recall is the last observation of an instance, present or gone.
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

// maxPrice bounds the hourly price in a tag: anybody who may tag an instance could write anything there.
const maxPrice = 1_000_000 * drover.Dollar

// sighting is what the engine is told of a listed instance. Its tags come from outside: an impossible price is
// dropped, and text is sanitized so that a recording reproduces it.
func sighting(in driver.Instance) engine.Sighting {
	tag := func(name string) string { return strings.ToValidUTF8(in.Tags[name], "\uFFFD") }
	price, err := strconv.ParseInt(tag(driver.TagPrice), 10, 64)
	if err != nil || price < 0 || drover.Money(price) > maxPrice {
		price = 0
	}
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
		Kept:         stoppedAt(tag(driver.TagStopped)),
		Reclaimed:    in.Reclaimed,
		Failed:       in.Failed,
		Ended:        in.Ended,
	}
}

// stoppedAt is when Drover stopped an instance that has this tag; 0 if it did not.
func stoppedAt(tag string) drover.Time {
	at, err := time.Parse(time.RFC3339, tag)
	if err != nil {
		return 0
	}
	return drover.TimeOf(at)
}

// maxAddress is longer than any address.
const maxAddress = 300

// addresses drops those that cannot be recorded and dialled.
func addresses(a driver.Addresses) driver.Addresses {
	for _, text := range []*string{&a.Private, &a.Public, &a.User} {
		if len(*text) > maxAddress || !utf8.ValidString(*text) {
			*text = ""
		}
	}
	return a
}

// describe asks a cloud whether it has an instance that its lists lack.
func (c *Controller) describe(ctx context.Context, effect int64, f engine.Describe) engine.Body {
	answer := engine.Described{Effect: effect, Instance: f.Instance, Began: c.clock.now()}
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	switch in, err := c.tryDescribe(ctx, f); {
	case drover.KindOf(err) == drover.KindNotFound:
		answer.Gone, answer.Ended = true, in.Ended
	case err != nil:
		answer.Err = drover.AsError(err, drover.KindTransient)
	}
	return answer
}

// tryDescribe returns KindNotFound if the cloud says that there is no such instance.
func (c *Controller) tryDescribe(ctx context.Context, f engine.Describe) (driver.Instance, error) {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "%v", err) // no word of the cloud's
	}
	d, ok := driver.As[driver.Describer](cl.own)
	if !ok {
		return driver.Instance{}, drover.Errorf(drover.KindUnsupported, "cloud %s cannot be asked for one instance", f.Cloud)
	}
	cl.own.Adopt(f.ProviderID)
	return d.Describe(ctx, f.ProviderID)
}

func (c *Controller) create(ctx context.Context, effect int64, f engine.Create) engine.Body {
	cl, err := c.cloud(f.Cloud)
	var r driver.CreateRequest
	if err == nil {
		r, err = c.createRequest(cl, f)
	}
	if err != nil {
		return engine.CreateFailed{Effect: effect, Instance: f.Instance, Err: drover.AsError(err, drover.KindInvalid)}
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if !cl.own.Capabilities().ManyCandidates {
		r.Candidates = r.Candidates[:1]
	}
	in, taken, err := cl.own.Create(ctx, r)
	if err != nil {
		return engine.CreateFailed{Effect: effect, Instance: f.Instance, Tried: len(r.Candidates), Err: drover.AsError(err, drover.KindTransient)}
	}
	cl.remember(in)
	at := max(0, slices.IndexFunc(f.Candidates, func(o drover.Offering) bool { return candidate(o).Same(taken) }))
	return engine.Created{Effect: effect, Instance: f.Instance, ProviderID: in.ID, Taken: f.Candidates[at], Addresses: addresses(in.Addresses)}
}

// createRequest has everything that is needed to adopt the instance, and to verify its identity, without any
// database.
func (c *Controller) createRequest(cl *cloud, f engine.Create) (driver.CreateRequest, error) {
	key, err := c.cfg.Key.HostKey(f.Name)
	if err != nil {
		return driver.CreateRequest{}, err
	}
	first := f.Candidates[0]
	r := driver.CreateRequest{
		Name:      f.Prefix + f.Name,
		Disk:      f.Disk,
		Init:      c.initCommand(f.Pool),
		HostKey:   key.Private,
		PublicKey: c.authorizedKey(cl),
		Tags: map[string]string{
			driver.TagFleet:   c.cfg.Fleet,
			driver.TagName:    f.Name,
			driver.TagType:    first.Type.Name,
			driver.TagPrice:   strconv.FormatInt(int64(first.Price), 10),
			driver.TagHostKey: key.Fingerprint,
		},
	}
	if f.Owner != "" {
		r.Tags[driver.TagOwner] = f.Owner
	}
	if f.Pool != "" {
		r.Tags[driver.TagPool], r.Tags[driver.TagMade] = f.Pool, f.Template
		own := c.current().Pools[f.Pool]
		r.PoolInit, r.Template, r.Images = c.poolInit(cl, f), own.Template, own.Images
	}
	if cl.own.Capabilities().HostKeys == driver.HostKeysSecret {
		r.Init = driver.PlantSecret(c.cfg.Key.BootSecret(f.Name), r.Init)
	}
	if cl.own.Capabilities().HostKeys != driver.HostKeysPlanted {
		delete(r.Tags, driver.TagHostKey) // the instance has another
	}
	for _, o := range f.Candidates {
		r.Candidates = append(r.Candidates, candidate(o))
	}
	return r, nil
}

// authorizedKey is the key that logs in to a new instance, as a line of an authorized_keys file.
func (c *Controller) authorizedKey(cl *cloud) string {
	if len(cl.SSH.Keys) == 0 {
		return c.cfg.Key.AuthorizedKey()
	}
	return remote.AuthorizedKey(cl.SSH.Keys[0])
}

func candidate(o drover.Offering) driver.Candidate {
	return driver.Candidate{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market, Arch: o.Type.Resources.Arch}
}

// remember keeps what a create call returned until a list has the instance too. The next list still counts it as new.
func (cl *cloudView) remember(in driver.Instance) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.created[in.ID] = in
}

// find is what is known of an instance, from the last list or else its create call.
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

func (c *Controller) destroy(ctx context.Context, effect int64, f engine.Destroy) engine.Body {
	answer := engine.Destroyed{Effect: effect, Instance: f.Instance}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	if err := c.tryDestroy(ctx, f); err != nil {
		answer.Err = drover.AsError(err, drover.KindTransient)
	}
	return answer
}

func (c *Controller) tryDestroy(ctx context.Context, f engine.Destroy) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return err
	}
	ids, err := c.providerIDs(ctx, cl, f)
	for _, id := range ids {
		cl.own.Adopt(id)
		err = errors.Join(err, cl.own.Destroy(ctx, id))
	}
	return err
}

// setTags records an instance's idle behaviour in its tags.
func (c *Controller) setTags(ctx context.Context, effect int64, f engine.SetTags) engine.Body {
	answer := engine.Tagged{Effect: effect, Instance: f.Instance}
	if err := c.trySetTags(ctx, f); err != nil {
		answer.Err = drover.AsError(err, drover.KindTransient)
	}
	return answer
}

func (c *Controller) trySetTags(ctx context.Context, f engine.SetTags) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	in, ok := cl.find(f.ProviderID)
	if !ok {
		return drover.Errorf(drover.KindTransient, "instance %s has not been listed yet", f.Name)
	}
	tags := maps.Clone(in.Tags)
	delete(tags, driver.TagIdle)
	delete(tags, driver.TagStopped)
	if f.Stopped != 0 {
		tags[driver.TagStopped] = f.Stopped.Std().UTC().Format(time.RFC3339)
	}
	if f.Idle != drover.IdleRun {
		tags[driver.TagIdle] = string(f.Idle)
	}
	if f.Owner != "" {
		tags[driver.TagOwner] = f.Owner
	}
	cl.own.Adopt(f.ProviderID)
	if err := cl.own.SetTags(ctx, f.ProviderID, tags); err != nil {
		return err
	}
	cl.retag(f.ProviderID, tags)
	if l := c.link(f.Instance); l != nil {
		l.order()
	}
	return nil
}

// retag keeps an instance's new tags until a list has them too.
func (cl *cloudView) retag(id string, tags map[string]string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, known := range []map[string]driver.Instance{cl.seen, cl.created} {
		if in, ok := known[id]; ok {
			in.Tags = tags
			known[id] = in
		}
	}
}

// providerIDs are the cloud's ids of an instance: if its id never became known, all that the cloud lists under its
// name, which are two if the cloud made one create call twice. A list may still lack some. They do not leak: the
// engine does not take a destruction by name for the end, and destroys whatever a later list shows under the name by
// its id.
func (c *Controller) providerIDs(ctx context.Context, cl *cloud, f engine.Destroy) (ids []string, err error) {
	if f.ProviderID != "" {
		return []string{f.ProviderID}, nil
	}
	all, err := c.listFleet(ctx, cl)
	for id, in := range all {
		if in.Tags[driver.TagName] == f.Name {
			ids = append(ids, id)
		}
	}
	return ids, err
}
