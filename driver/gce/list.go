package gce

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// preemption is the operation with which Google interrupts a spot instance.
const preemption = "compute.instances.preempted"

// List lists the project's instances and keeps the region's.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	filter, err := filterOf(tags)
	if err != nil {
		return nil, nil // no label can have this value, so no instance has it
	}
	found, err := c.byZone(ctx, "instances.aggregatedList", filter)
	all, laterErr := c.translated(ctx, found...)
	return all, errs.Classify("list instances", cmp.Or(err, laterErr))
}

// byZone lists what matches a filter in the region. A page that lacks one of its zones is an error.
func (c *cloud) byZone(ctx context.Context, call, filter string) ([]resource, error) {
	elsewhere := func(place string) bool { return !strings.HasPrefix(path.Base(place), c.config.Region+"-") }
	read := func(p page[map[string]resource]) (some []resource, err error) {
		missing := p.Unreachables
		for place, zone := range p.Items {
			if !elsewhere(place) {
				some = append(append(some, zone.Instances...), zone.Disks...)
			}
			if zone.Warning.Code == "UNREACHABLE" {
				missing = append(missing, place)
			}
		}
		if missing = slices.DeleteFunc(missing, elsewhere); len(missing) > 0 {
			err = drover.Errorf(drover.KindTransient, "Google cannot reach %v", missing)
		}
		return some, err
	}
	return list(ctx, c.api, call, "", read, "filter", filter)
}

// Describe reads one instance.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	doing := "describe instance " + id
	found, err := c.api.get(ctx, id, instanceFields)
	if err != nil {
		return driver.Instance{}, errs.Classify(doing, err)
	}
	all, err := c.translated(ctx, found)
	return all[0], errs.Classify(doing, err)
}

// instanceOf translates an instance.
func (c *cloud) instanceOf(i resource) driver.Instance {
	zone := path.Base(i.Zone)
	in := driver.Instance{
		ID: zone + "/" + i.Name, Zone: zone, Tags: labels.Read(i.Labels), ProviderType: path.Base(i.MachineType),
		Market: drover.OnDemand, State: cmp.Or(states[i.Status], driver.Stopping), Created: kit.ReadTime(i.CreationTimestamp),
	}
	if i.Scheduling.ProvisioningModel == "SPOT" || i.Scheduling.Preemptible {
		in.Market = drover.Spot
	}
	in.Addresses.User = c.config.User
	for _, nic := range i.NetworkInterfaces {
		in.Addresses.Private = cmp.Or(in.Addresses.Private, nic.NetworkIP)
		for _, a := range nic.AccessConfigs {
			in.Addresses.Public = cmp.Or(in.Addresses.Public, a.NatIP)
		}
	}
	return in
}

// states are the states that do not end an instance.
var states = map[string]driver.State{
	"PENDING": driver.Pending, "PROVISIONING": driver.Pending, "STAGING": driver.Pending, "RUNNING": driver.Running, "REPAIRING": driver.Running,
	"TERMINATED": driver.Stopped, "STOPPED": driver.Stopped, "SUSPENDED": driver.Stopped,
}

// translated returns the instances as Drover sees them, including whether Google interrupted them. An instance does not
// show why it stopped, but Google's operations do; they are listed only if a spot instance has stopped.
func (c *cloud) translated(ctx context.Context, found ...resource) ([]driver.Instance, error) {
	all, taken := kit.Each(found, c.instanceOf), map[string]map[string]drover.Time{} // when, by zone and name
	for k, in := range all {
		if in.Market != drover.Spot || in.State != driver.Stopped && in.State != driver.Stopping {
			continue
		}
		if _, asked := taken[in.Zone]; !asked {
			times, err := c.preemptions(ctx, in.Zone)
			if err != nil {
				return all, fmt.Errorf("list preemptions: %w", errs.Aside(err))
			}
			taken[in.Zone] = times
		}
		when, was := taken[in.Zone][found[k].Name]
		all[k].Reclaimed = was && when >= kit.ReadTime(found[k].LastStartTimestamp)
	}
	return all, nil
}

// preemptions returns the time of each instance's last preemption in a zone, by instance name.
func (c *cloud) preemptions(ctx context.Context, zone string) (map[string]drover.Time, error) {
	found, err := list(ctx, c.api, "zoneOperations.list", zone, items[resource], "filter", fmt.Sprintf("operationType = %q", preemption))
	times := map[string]drover.Time{}
	for _, o := range found {
		name := path.Base(o.TargetLink)
		times[name] = max(times[name], kit.ReadTime(o.InsertTime))
	}
	return times, err
}

// SetTags replaces all labels except the configured ones. If somebody else changes them at the same moment, it returns
// a transient error.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	doing := "tag instance " + id
	written, err := labelsOf(tags)
	if err != nil {
		return errs.Classify(doing, err)
	}
	found, err := c.api.get(ctx, id, instanceFields)
	if err != nil {
		return errs.Classify(doing, err)
	}
	wanted := object{"labelFingerprint": found.LabelFingerprint, "labels": kit.MergeTags(c.config.Labels, written)}
	return errs.Classify(doing, c.api.do(ctx, "instances.setLabels", id, wanted, &resource{}))
}

// split returns the zone and the name in an instance's id.
func split(id string) (zone, name string, err error) {
	zone, name, ok := strings.Cut(id, "/")
	if !ok || !resourceName.MatchString(zone) || !resourceName.MatchString(name) {
		return "", "", drover.Errorf(drover.KindNotFound, "there is no instance %.80q: an id has the form ZONE/NAME", id)
	}
	return zone, name, nil
}

// hostKeys is where Google's agent on an instance publishes its host keys while booting.
const hostKeys = "hostkeys/"

// VerifyHostKey compares the key with the host keys that the instance published through Google.
func (c *cloud) VerifyHostKey(ctx context.Context, in driver.Instance, key, _ []byte) error {
	if c.config.Init == initCloud {
		return drover.Errorf(drover.KindUnsupported, "host keys are installed through user data, so the cloud cannot verify them")
	}
	var told struct{ QueryValue metadata }
	err := c.api.do(ctx, "instances.getGuestAttributes", in.ID, nil, &told)
	switch none := errs.StatusOf(err) == http.StatusNotFound; {
	case err != nil && !none:
		return errs.Classify("read the host keys of instance "+in.ID, err)
	case none || len(told.QueryValue.Items) == 0:
		return drover.Errorf(drover.KindTransient, "instance %s has not published its host keys yet", in.ID)
	case slices.Contains(slices.Collect(maps.Values(told.QueryValue.values())), base64.StdEncoding.EncodeToString(key)):
		return nil
	}
	return drover.Errorf(drover.KindHostKey, "instance %s has different host keys", in.ID)
}

// Attribute reads the project's metadata.
func (c *cloud) Attribute(ctx context.Context, name string) (string, error) {
	var found struct{ CommonInstanceMetadata metadata }
	if err := c.api.do(ctx, "projects.get", "", nil, &found); err != nil {
		return "", errs.Classify("read attribute "+name, err)
	}
	if value, has := found.CommonInstanceMetadata.values()[name]; has {
		return value, nil
	}
	return "", drover.Errorf(drover.KindNotFound, "project %s has no attribute %s in its metadata", c.api.project, name)
}

// labels is the encoding of tags. A label's value is short and has lower-case letters, digits, dashes and underscores:
// see "Requirements for labels" in Google's guide to Compute Engine.
var labels = kit.Labels{Max: 63, Mark: '_', Joint: "--", Plain: func(c byte, _ bool) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
}}

// maxLabels is Google's limit for a resource.
const maxLabels = 64

// labelsOf encodes tags as labels. A tag whose key cannot be a label's is KindInvalid.
func labelsOf(tags map[string]string) (map[string]string, error) {
	all := labels.Write(tags)
	for key := range tags {
		if !labelRules.Key.MatchString(key) || strings.Contains(key, labels.Joint) {
			return nil, drover.Errorf(drover.KindInvalid, "tag %.80q: Google does not allow this key for a label", key)
		}
	}
	if len(all) > maxLabels {
		return nil, drover.Errorf(drover.KindInvalid, "%d labels are more than Google's limit of %d", len(all), maxLabels)
	}
	return all, nil
}

// filterOf returns a filter for instances with all the tags; without tags it is empty.
func filterOf(tags map[string]string) (string, error) {
	written, err := labelsOf(tags)
	all := kit.EachTag(written, func(key, value string) string { return fmt.Sprintf("(labels.%s = %q)", key, value) })
	return strings.Join(all, " "), err
}
