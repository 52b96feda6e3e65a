package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/remote"
)

// Deadlines of calls to a cloud. Each is generous for a healthy cloud, and short enough that a hung call is soon
// retried.
const (
	listTimeout     = time.Minute
	createTimeout   = 2 * time.Minute
	destroyTimeout  = time.Minute
	describeTimeout = 30 * time.Second
)

// transient returns an effect's failure, which is transient unless it has a kind of its own; nil if it succeeded.
func transient(err error) *drover.Error {
	if err == nil {
		return nil
	}
	return drover.AsError(err, drover.KindTransient)
}

// list requests this fleet's instances from a cloud and returns the differences from the last good list.
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

// describe queries a cloud about an instance missing from its lists.
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

// tryDescribe returns KindNotFound if the cloud reports that the instance does not exist.
func (c *Controller) tryDescribe(ctx context.Context, f engine.Describe) (driver.Instance, error) {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "%v", err) // not the cloud's answer
	}
	d, ok := driver.As[driver.Describer](cl.own)
	if !ok {
		return driver.Instance{}, drover.Errorf(drover.KindUnsupported, "cloud %s cannot look up a single instance", f.Cloud)
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
		e := *drover.AsError(err, drover.KindTransient)
		e.Message = strings.ReplaceAll(e.Message, "create instance "+r.Name+": ", "") // the engine says that
		return engine.CreateFailed{Effect: effect, Instance: f.Instance, Tried: len(r.Candidates), Err: &e}
	}
	in.Tags = r.Tags // whatever the reply says: SetTags replaces all
	cl.remember(in)
	at := max(0, slices.IndexFunc(f.Candidates, func(o drover.Offering) bool { return candidate(o).Same(taken) }))
	return engine.Created{Effect: effect, Instance: f.Instance, ProviderID: in.ID, Taken: f.Candidates[at], Addresses: addresses(in.Addresses)}
}

// createRequest returns a request with everything needed to adopt the instance, and to verify its identity, without a
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
		delete(r.Tags, driver.TagHostKey) // the instance has another key
	}
	for _, o := range f.Candidates {
		r.Candidates = append(r.Candidates, candidate(o))
	}
	return r, nil
}

// authorizedKey returns the login key of new instances, as a line of an authorized_keys file.
func (c *Controller) authorizedKey(cl *cloud) string {
	if len(cl.SSH.Keys) == 0 {
		return c.cfg.Key.AuthorizedKey()
	}
	return remote.AuthorizedKey(cl.SSH.Keys[0])
}

func candidate(o drover.Offering) driver.Candidate {
	return driver.Candidate{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market, Arch: o.Type.Resources.Arch}
}

func (c *Controller) destroy(ctx context.Context, f engine.Destroy) error {
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
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
func (c *Controller) setTags(ctx context.Context, f engine.SetTags) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	in, ok := cl.find(f.ProviderID)
	if !ok {
		return drover.Errorf(drover.KindTransient, "the cloud has not listed instance %s yet", f.Name)
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
	cl.update(f.ProviderID, func(in *driver.Instance) { in.Tags = tags }) // until a list has them
	if l := c.link(f.Instance); l != nil {
		l.order()
	}
	return nil
}

// providerIDs returns an instance's provider IDs: if its ID never became known, those of all listed instances with its
// name, which are two if the cloud executed one create call twice. A list may not have all of them yet. They do not
// leak: the engine does not consider a destruction by name final, and destroys by ID whatever a later list shows under
// that name.
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

// switchInstance asks a cloud to stop an instance, or to start it again.
func (c *Controller) switchInstance(ctx context.Context, f engine.Switch) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return drover.Errorf(drover.KindTransient, "%v", err) // not the cloud's answer
	}
	s, can := driver.As[driver.Starter](cl.own)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "cloud %s cannot stop instances", f.Cloud)
	}
	cl.own.Adopt(f.ProviderID)
	if f.On {
		ctx, cancel := context.WithTimeout(ctx, createTimeout)
		defer cancel()
		return s.Start(ctx, f.ProviderID)
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	if err = s.Stop(ctx, f.ProviderID); err == nil {
		// Another instance may get its addresses soon. The next list that shows an address counts as a change.
		cl.update(f.ProviderID, func(in *driver.Instance) { in.Addresses = driver.Addresses{} })
	}
	return err
}

// growTimeout is how long growing a volume and its file system may take: on EC2 it may take minutes until the instance
// sees it.
const growTimeout = 10 * time.Minute

// growDisk asks the cloud to grow an instance's volume, then grows the file system on the instance.
func (c *Controller) growDisk(ctx context.Context, f engine.GrowDisk) error {
	ctx, cancel := context.WithTimeout(ctx, growTimeout)
	defer cancel()
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return err
	}
	grower, can := driver.As[driver.DiskGrower](cl.own)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "its cloud cannot grow volumes")
	}
	cl.own.Adopt(f.ProviderID)
	if err := grower.GrowDisk(ctx, f.ProviderID, f.Size); err != nil {
		return err
	}
	l := c.link(f.Instance)
	if l == nil {
		return drover.Errorf(drover.KindTransient, "the volume has grown, but the instance is not connected, so its file system cannot grow")
	}
	return l.conn.GrowRoot(ctx, f.Size)
}
