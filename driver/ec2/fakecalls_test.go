package ec2

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// createFleet makes one instance from the first available override. An equal request with the same token gets the same
// answer; a different one is refused.
func (f *fake) createFleet(in url.Values) (string, *wrong) {
	if in.Get("Type") != "instant" || in.Get("TargetCapacitySpecification.TotalTargetCapacity") != "1" {
		return "", &wrong{"InvalidParameterValue", "the fake makes instant fleets of one"}
	}
	before, again := f.tokens[in.Get("ClientToken")]
	if again && before.request != in.Encode() {
		return "", &wrong{"IdempotentParameterMismatch", "another request had this token"}
	}
	if again {
		return before.reply, nil
	}
	config := numbered(in, "LaunchTemplateConfigs")[0]
	name := config.Get("LaunchTemplateSpecification.LaunchTemplateName")
	if _, ok := f.templates[name]; !ok {
		return "", &wrong{"InvalidLaunchTemplateName.NotFoundException", "there is no launch template " + name}
	}
	var refused []string
	for _, o := range numbered(config, "Overrides") {
		m, bad := f.make(in, o)
		if bad == nil {
			reply := text("fleetId", "fleet-1") + list("fleetInstanceSet", []*held{m}, (*held).made)
			f.tokens[in.Get("ClientToken")] = answered{in.Encode(), reply}
			return reply, nil
		}
		refused = append(refused, text("errorCode", bad.code)+text("errorMessage", bad.message)+
			el("launchTemplateAndOverrides", el("overrides", text("instanceType", o.Get("InstanceType")), text("subnetId", o.Get("SubnetId")))))
	}
	reply := text("fleetId", "fleet-1") + list("errorSet", refused, func(s string) string { return s })
	f.tokens[in.Get("ClientToken")] = answered{in.Encode(), reply}
	return reply, nil
}

func (m *held) made() string {
	return list("instanceIds", []string{m.id}, func(id string) string { return id }) + text("instanceType", m.kind) +
		text("availabilityZone", m.zone) + text("lifecycle", m.market)
}

// make creates an instance if it is available.
func (f *fake) make(in, override url.Values) (*held, *wrong) {
	k, ok := f.kind(override.Get("InstanceType"))
	zone, there := strings.CutPrefix(override.Get("SubnetId"), "subnet-")
	switch {
	case !ok:
		return nil, &wrong{"InvalidParameterValue", fmt.Sprintf("Invalid value '%s' for InstanceType", override.Get("InstanceType"))}
	case !there || !slices.Contains(f.zones, zone):
		return nil, &wrong{"InvalidSubnetID.NotFound", "there is no subnet " + override.Get("SubnetId")}
	case f.images()[override.Get("ImageId")] == "":
		return nil, &wrong{"InvalidAMIID.NotFound", "there is no image " + override.Get("ImageId")}
	}
	config := numbered(in, "LaunchTemplateConfigs")[0]
	if key := f.templates[config.Get("LaunchTemplateSpecification.LaunchTemplateName")].Get("LaunchTemplateData.KeyName"); key != "" && f.keys[key] == nil {
		return nil, &wrong{"InvalidKeyPair.NotFound", fmt.Sprintf("The key pair '%s' does not exist", key)}
	}
	word := in.Get("TargetCapacitySpecification.DefaultTargetCapacityType")
	if code, lacking := f.out.Of(k.name, zone, word); lacking {
		return nil, &wrong{code, fmt.Sprintf("no %s in %s, %s", k.name, zone, word)}
	}
	group := quotaGroup(k.name, market(word))
	if left, limited := f.vcpus[group]; limited && left < k.vcpus {
		code := map[bool]string{true: "MaxSpotInstanceCountExceeded", false: "VcpuLimitExceeded"}[word == "spot"]
		return nil, &wrong{code, "no vCPUs are left of " + group}
	} else if limited {
		f.vcpus[group] = left - k.vcpus
	}
	f.last++
	m := &held{id: fmt.Sprintf("i-%017x", f.last), kind: k.name, zone: zone, market: word, image: override.Get("ImageId"), tags: tagsIn(in, "instance"),
		created: time.Now(), launch: in, override: override}
	m.tags["aws:ec2:fleet-id"] = "fleet-1"
	f.instances[m.id] = m
	return m, nil
}

// state returns an instance's current state, and its number; empty once it is no longer shown.
func (f *fake) state(m *held) (name, code string) {
	now := time.Now()
	switch {
	case !m.ended.IsZero() && now.Sub(m.ended) > time.Hour:
		return "", ""
	case !m.ended.IsZero() && now.Sub(m.ended) >= f.bootTime:
		return "terminated", "48"
	case !m.ended.IsZero():
		return "shutting-down", "32"
	case m.stopped:
		return "stopped", "80"
	case now.Sub(m.created) < f.bootTime:
		return "pending", "0"
	}
	return "running", "16"
}

func (f *fake) describeInstances(in url.Values) (string, *wrong) {
	ids := values(in, "InstanceId")
	for _, id := range ids {
		if _, bad := f.find(id); bad != nil {
			return "", bad
		}
	}
	var all []*held
	for _, id := range slices.Sorted(maps.Keys(f.instances)) {
		m := f.instances[id]
		state, _ := f.state(m)
		late := len(ids) == 0 && time.Since(m.created) < f.lag
		if state == "" || late || len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		if bears(in, m.tags) && passes(in, "instance-state-name", state) && passes(in, "state-reason-code", m.reason) {
			all = append(all, m)
		}
	}
	some, next := cut(f, in, all)
	return el("reservationSet", el("item", list("instancesSet", some, f.show))) + next, nil
}

func (f *fake) show(m *held) string {
	state, code := f.state(m)
	shown := text("instanceId", m.id) + text("instanceType", m.kind) + text("launchTime", m.created.UTC().Format(time.RFC3339)) +
		el("placement", text("availabilityZone", m.zone)) + el("instanceState", text("name", state), text("code", code)) + tagSet(m.tags)
	if m.market == "spot" {
		shown += text("instanceLifecycle", "spot")
	}
	switch {
	case m.reason != "" && m.reason != "Client.UserInitiatedShutdown":
		shown += text("reason", m.reason)
	case !m.ended.IsZero():
		shown += text("reason", m.ended.UTC().Format("User initiated (2006-01-02 15:04:05 GMT)"))
	}
	if m.reason != "" {
		shown += el("stateReason", text("code", m.reason), text("message", m.reason+": it ended"))
	}
	if state == "running" || state == "stopped" {
		shown += text("rootDeviceName", "/dev/xvda") + list("blockDeviceMapping", []string{"/dev/sdf", "/dev/xvda"}, func(device string) string {
			return text("deviceName", device) + el("ebs", text("volumeId", map[string]string{"/dev/sdf": "vol-other", "/dev/xvda": "vol-" + m.id}[device]))
		})
	}
	if state != "pending" {
		shown += text("privateIpAddress", "10.0.0.7") + text("ipAddress", "192.0.2.7")
	}
	return shown
}

func (f *fake) find(id string) (*held, *wrong) {
	m, ok := f.instances[id]
	if !ok {
		return nil, &wrong{"InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", id)}
	}
	if state, _ := f.state(m); state == "" {
		return nil, &wrong{"InvalidInstanceID.NotFound", fmt.Sprintf("The instance ID '%s' does not exist", id)}
	}
	return m, nil
}

// each calls do for every instance that the call names, or for none if one of them does not exist.
func (f *fake) each(in url.Values, name string, do func(*held)) (string, *wrong) {
	var all []*held
	for _, id := range values(in, name) {
		m, bad := f.find(id)
		if bad != nil {
			return "", bad
		}
		all = append(all, m)
	}
	for _, m := range all {
		do(m)
	}
	return "", nil
}

func (f *fake) terminateInstances(in url.Values) (string, *wrong) {
	for _, id := range values(in, "InstanceId") {
		if code := f.immune[id]; code != "" {
			return "", &wrong{code, "The instance " + id + " may not be terminated."}
		}
	}
	return f.each(in, "InstanceId", func(m *held) { f.end(m, "Client.UserInitiatedShutdown") })
}

// end ends an instance and returns its vCPUs to the quota.
func (f *fake) end(m *held, reason string) {
	if m.ended.IsZero() {
		m.ended, m.reason = time.Now(), reason
		k, _ := f.kind(m.kind)
		if group := quotaGroup(m.kind, market(m.market)); f.vcpus[group] >= 0 {
			if left, limited := f.vcpus[group]; limited {
				f.vcpus[group] = left + k.vcpus
			}
		}
	}
}

// reclaim interrupts a spot instance.
func (f *fake) reclaim(id string) { f.terminate(id, "Server.SpotInstanceTermination") }

// terminate ends an instance for a reason of EC2's own.
func (f *fake) terminate(id, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(f.instances[id], reason)
}

func (f *fake) stopInstances(in url.Values) (string, *wrong) {
	for _, id := range values(in, "InstanceId") {
		if m, bad := f.find(id); bad == nil && m.market == "spot" {
			return "", &wrong{"UnsupportedOperation", "You can't stop the Spot Instance"}
		}
	}
	return f.each(in, "InstanceId", func(m *held) { m.stopped = true })
}

func (f *fake) startInstances(in url.Values) (string, *wrong) {
	return f.each(in, "InstanceId", func(m *held) { m.stopped = false })
}

func (f *fake) createTags(in url.Values) (string, *wrong) {
	return f.each(in, "ResourceId", func(m *held) {
		for _, t := range numbered(in, "Tag") {
			m.tags[t.Get("Key")] = t.Get("Value")
		}
	})
}

func (f *fake) deleteTags(in url.Values) (string, *wrong) {
	return f.each(in, "ResourceId", func(m *held) {
		for _, t := range numbered(in, "Tag") {
			delete(m.tags, t.Get("Key"))
		}
	})
}

func (f *fake) createLaunchTemplate(in url.Values) (string, *wrong) {
	name := in.Get("LaunchTemplateName")
	if _, there := f.templates[name]; there {
		return "", &wrong{"InvalidLaunchTemplateName.AlreadyExistsException", name + " is in use"}
	}
	f.templates[name] = in
	return el("launchTemplate", text("launchTemplateName", name)), nil
}

func (f *fake) describeLaunchTemplates(in url.Values) (string, *wrong) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.templates)) {
		if bears(in, tagsIn(f.templates[name], "launch-template")) {
			all = append(all, name)
		}
	}
	some, next := cut(f, in, all)
	return list("launchTemplates", some, func(name string) string {
		return text("launchTemplateName", name) + text("createTime", time.Now().UTC().Format(time.RFC3339)) + tagSet(tagsIn(f.templates[name], "launch-template"))
	}) + next, nil
}

func (f *fake) deleteLaunchTemplate(in url.Values) (string, *wrong) {
	name := in.Get("LaunchTemplateName")
	if _, there := f.templates[name]; !there {
		return "", &wrong{"InvalidLaunchTemplateName.NotFoundException", "there is no " + name}
	}
	delete(f.templates, name)
	return "", nil
}

func (f *fake) importKeyPair(in url.Values) (string, *wrong) {
	name := in.Get("KeyName")
	if _, there := f.keys[name]; there {
		return "", &wrong{"InvalidKeyPair.Duplicate", name + " is in use"}
	}
	f.keys[name] = tagsIn(in, "key-pair")
	return text("keyName", name), nil
}

func (f *fake) describeKeyPairs(in url.Values) (string, *wrong) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.keys)) {
		if bears(in, f.keys[name]) {
			all = append(all, name)
		}
	}
	return list("keySet", all, func(name string) string { return text("keyName", name) + tagSet(f.keys[name]) }), nil
}

func (f *fake) deleteKeyPair(in url.Values) (string, *wrong) {
	delete(f.keys, in.Get("KeyName"))
	return "", nil
}

func (f *fake) describeVolumes(in url.Values) (string, *wrong) {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(f.volumes)) {
		if bears(in, f.volumes[id]) && passes(in, "status", "available") {
			all = append(all, id)
		}
	}
	for _, m := range f.instances {
		if strings.Contains(in.Encode(), "volume-id") && passes(in, "volume-id", "vol-"+m.id) {
			return list("volumeSet", []*held{m}, func(m *held) string { return text("volumeId", "vol-"+m.id) + text("size", strconv.Itoa(m.gib)) }), nil
		}
	}
	some, next := cut(f, in, all)
	return list("volumeSet", some, func(id string) string {
		return text("volumeId", id) + text("createTime", "2020-01-01T00:00:00Z") + tagSet(f.volumes[id])
	}) + next, nil
}

// modifyVolume grows a root volume, once.
func (f *fake) modifyVolume(in url.Values) (string, *wrong) {
	m, bad := f.find(strings.TrimPrefix(in.Get("VolumeId"), "vol-"))
	size, _ := strconv.Atoi(in.Get("Size"))
	switch {
	case bad != nil:
		return "", &wrong{"InvalidVolume.NotFound", "there is no such volume"}
	case size <= m.gib:
		return "", &wrong{"InvalidParameterValue", "New size cannot be smaller than existing size"}
	case m.gib > 0:
		return "", &wrong{"VolumeModificationRateExceeded", "You've reached the maximum modification rate per volume limit"}
	}
	m.gib = size
	return el("volumeModification", text("volumeId", in.Get("VolumeId")), text("modificationState", "modifying")), nil
}

func (f *fake) deleteVolume(in url.Values) (string, *wrong) {
	if _, there := f.volumes[in.Get("VolumeId")]; !there {
		return "", &wrong{"InvalidVolume.NotFound", "there is no such volume"}
	}
	delete(f.volumes, in.Get("VolumeId"))
	return "", nil
}

func (f *fake) describeSubnets(in url.Values) (string, *wrong) {
	var all []string
	for _, zone := range f.zones {
		if passes(in, "subnet-id", "subnet-"+zone) {
			all = append(all, zone)
		}
	}
	some, next := cut(f, in, all)
	return list("subnetSet", some, func(zone string) string { return text("subnetId", "subnet-"+zone) + text("availabilityZone", zone) }) + next, nil
}

// images returns the names of all images, by id.
func (f *fake) images() map[string]string {
	return map[string]string{"ami-debian": "debian-12-amd64-20260101", "ami-older": "debian-12-amd64-20250101", "ami-arm": "debian-12-arm64-20260101"}
}

func (f *fake) describeImages(in url.Values) (string, *wrong) {
	ids := values(in, "ImageId")
	if len(ids) > 0 && f.images()[ids[0]] == "" {
		return "", &wrong{"InvalidAMIID.NotFound", "there is no image " + ids[0]}
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(f.images())) {
		pattern := f.images()[id]
		for _, filter := range numbered(in, "Filter") {
			if filter.Get("Name") == "name" {
				pattern = filter.Get("Value.1")
			}
		}
		matches, _ := path.Match(pattern, f.images()[id])
		if matches && (len(ids) == 0 || slices.Contains(ids, id)) && passes(in, "architecture", archOfImage(f.images()[id])) {
			all = append(all, id)
		}
	}
	return list("imagesSet", all, func(id string) string {
		name := f.images()[id]
		return text("imageId", id) + text("name", name) + text("architecture", archOfImage(name)) + text("rootDeviceName", "/dev/xvda") +
			text("creationDate", name[len(name)-8:len(name)-4]+"-01-01T00:00:00.000Z") +
			el("blockDeviceMapping", el("item", text("deviceName", "/dev/xvda"), el("ebs", text("volumeSize", "8"))))
	}), nil
}

func archOfImage(name string) string {
	if strings.Contains(name, "arm64") {
		return "arm64"
	}
	return "x86_64"
}

func (f *fake) describeInstanceTypes(in url.Values) (string, *wrong) {
	some, next := cut(f, in, f.kinds)
	return list("instanceTypeSet", some, func(k kind) string {
		markets := []string{"on-demand", "spot"}
		shown := text("instanceType", k.name) + text("bareMetal", fmt.Sprint(k.metal)) + el("vCpuInfo", text("defaultVCpus", fmt.Sprint(k.vcpus))) +
			el("memoryInfo", text("sizeInMiB", fmt.Sprint(k.mib))) + list("supportedUsageClasses", markets, func(m string) string { return m }) +
			el("processorInfo", list("supportedArchitectures", []string{k.arch}, func(a string) string { return a }))
		if k.gpus > 0 {
			shown += el("gpuInfo", list("gpus", []int{k.gpus}, func(n int) string { return text("count", fmt.Sprint(n)) }))
		}
		return shown
	}) + next, nil
}

func (f *fake) describeInstanceTypeOfferings(in url.Values) (string, *wrong) {
	var all [][2]string
	for _, k := range f.kinds {
		for _, zone := range f.zones {
			all = append(all, [2]string{k.name, zone})
		}
	}
	some, next := cut(f, in, all)
	return list("instanceTypeOfferingSet", some, func(o [2]string) string { return text("instanceType", o[0]) + text("location", o[1]) }) + next, nil
}

// describeSpotPriceHistory returns each current price and the previous one.
func (f *fake) describeSpotPriceHistory(in url.Values) (string, *wrong) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.spot)) {
		for _, zone := range slices.Sorted(maps.Keys(f.spot[name])) {
			if want := in.Get("InstanceType.1"); want != "" && (want != name || in.Get("AvailabilityZone") != zone) {
				continue
			}
			for hours, price := range []string{f.spot[name][zone], "0.05"} {
				all = append(all, text("instanceType", name)+text("availabilityZone", zone)+text("spotPrice", price)+
					text("timestamp", time.Now().Add(-time.Duration(hours+1)*time.Hour).UTC().Format(time.RFC3339)))
			}
		}
	}
	some, next := cut(f, in, all)
	return list("spotPriceHistorySet", some, func(s string) string { return s }) + next, nil
}
