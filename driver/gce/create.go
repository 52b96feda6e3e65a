package gce

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// settleTime is how long an operation is awaited: within seconds Google says that a zone or a quota is used up. A
// later failure shows up as an instance that is no longer listed.
const settleTime = 15 * time.Second

// resourceName matches the names that Google accepts.
var resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// longestName is well within the limit of a label; Google's own names may be shorter.
const longestName = 128

// demands are what Google requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "debian-cloud/family/debian-12"}

// Create makes an instance of the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.insert)
}

// insert makes the instance, or finds the existing one of the name.
func (c *cloud) insert(ctx context.Context, r driver.CreateRequest) (in driver.Instance, err error) {
	first := r.Candidates[0]
	made, err := c.resource(ctx, r, first)
	if err != nil {
		return in, err
	}
	call := c.api.compute().Instances.Insert(c.api.project, first.Zone, made).RequestId(c.token(r.Name, "insert"))
	begun, err := do(ctx, c.api, "instances.insert", rateQueries, call)
	err = c.settle(ctx, begun, err)
	if errs.KindOf(err) == drover.KindConflict {
		return c.recall(ctx, r, first.Zone, made.Name)
	}
	made.Zone, made.Status = first.Zone, "PROVISIONING"
	return c.instanceOf(made), err
}

// settle waits for an operation for a while, and returns its result; nil if it goes on.
func (c *cloud) settle(ctx context.Context, begun *op, err error) error {
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for begun.Status != "DONE" {
		call := c.api.compute().ZoneOperations.Wait(c.api.project, path.Base(begun.Zone), begun.Name)
		next, err := do(short, c.api, "zoneOperations.wait", rateWaits, call)
		switch kind := errs.KindOf(err); {
		case err == nil:
			begun = next
		case ctx.Err() == nil && short.Err() != nil, kind == drover.KindRateLimit, kind == drover.KindNotFound: // it goes on, or is long over
			return nil
		default:
			return err
		}
	}
	return outcome(begun)
}

// token is a call's request id: a UUID derived from the instance's name, so that Google recognizes a repeated call.
func (c *cloud) token(name, call string) string {
	sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name + "/" + call))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80 // the form of a UUID that follows from a name (RFC 9562), which whoever checks UUIDs knows
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// named is Google's name of an instance: Drover's own, if Google accepts it.
func (c *cloud) named(name string) string {
	if resourceName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name))
	return "drover-" + hex.EncodeToString(sum[:16])
}

// recall finds the instance that was requested before.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest, zone, name string) (driver.Instance, error) {
	found, err := c.api.get(ctx, zone+"/"+name, instanceFields)
	if errs.KindOf(err) == drover.KindNotFound {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "it existed a moment ago but is no longer visible")
	}
	if err != nil {
		return driver.Instance{}, err
	}
	in := c.instanceOf(found)
	if in.Tags[driver.TagFleet] != r.Tags[driver.TagFleet] || in.Tags[driver.TagName] != r.Tags[driver.TagName] {
		return driver.Instance{}, drover.Errorf(drover.KindInvalid, "zone %s has an instance %s that belongs to someone else", zone, name)
	}
	return in, nil
}

// resource is the instance for the API: the user's raw template with Drover's values on top.
func (c *cloud) resource(ctx context.Context, r driver.CreateRequest, as driver.Candidate) (*compute.Instance, error) {
	switch {
	case !strings.HasPrefix(as.Zone, c.config.Region+"-"):
		return nil, drover.Errorf(drover.KindInvalid, "zone %s is not in region %s", as.Zone, c.config.Region)
	case as.ProviderType == "" || strings.ContainsAny(as.ProviderType+as.Zone, "/?#"):
		return nil, drover.Errorf(drover.KindInvalid, "%.80q in %.80q is not an instance type in a zone", as.ProviderType, as.Zone)
	}
	made, err := readTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	written, err := labelsOf(r.Tags)
	if err != nil {
		return nil, err
	}
	items, err := c.metadata(r)
	if err != nil {
		return nil, err
	}
	boot, err := c.bootDisk(ctx, r, as, written)
	if err != nil {
		return nil, err
	}
	made.Name = c.named(r.Name)
	made.MachineType = "zones/" + as.Zone + "/machineTypes/" + as.ProviderType
	made.Labels = kit.MergeTags(made.Labels, c.config.Labels, written)
	made.Metadata = mergedItems(made.Metadata, items)
	made.Disks = append([]*compute.AttachedDisk{boot}, made.Disks...)
	c.setScheduling(made, as.Market)
	c.setNetwork(made)
	if c.config.ServiceAccount != "" {
		made.ServiceAccounts = []*compute.ServiceAccount{{Email: c.config.ServiceAccount, Scopes: []string{scope}}}
	}
	return made, nil
}

// bootDisk is as large as requested, and at least as the image. It is deleted with the instance.
func (c *cloud) bootDisk(ctx context.Context, r driver.CreateRequest, as driver.Candidate, written map[string]string) (*compute.AttachedDisk, error) {
	size := r.Disk
	if size > 0 {
		least, err := c.imageSize(ctx, as.Image)
		if err != nil {
			return nil, err
		}
		size = max(size, least)
	}
	return &compute.AttachedDisk{
		Boot: true, AutoDelete: true,
		InitializeParams: &compute.AttachedDiskInitializeParams{
			SourceImage: as.Image, Labels: kit.MergeTags(c.config.Labels, written), DiskSizeGb: size.WholeGiB(),
			DiskType: "zones/" + as.Zone + "/diskTypes/" + c.diskType(as.ProviderType),
		},
	}, nil
}

// setScheduling sets the market and the end. A spot instance that is taken back stays, stopped, so that a list shows
// it; with max_run it is deleted in either case.
func (c *cloud) setScheduling(made *compute.Instance, m drover.Market) {
	if made.Scheduling == nil {
		made.Scheduling = &compute.Scheduling{}
	}
	s := made.Scheduling
	if s.ProvisioningModel = "STANDARD"; m == drover.Spot {
		s.ProvisioningModel, s.InstanceTerminationAction = "SPOT", "STOP"
	}
	if run := c.config.MaxRun; run > 0 {
		s.MaxRunDuration, s.InstanceTerminationAction = &compute.Duration{Seconds: int64(run.Seconds())}, "DELETE"
	}
	if m == drover.Spot || c.config.MaxRun > 0 {
		no := false
		s.AutomaticRestart = &no
	}
	if m == drover.Spot || stays.MatchString(made.MachineType) {
		s.OnHostMaintenance = "TERMINATE"
	}
}

// stays are the types that cannot move to another host: those with GPUs and those for supercomputing.
var stays = regexp.MustCompile(`/(a[0-9]|g[2-9]|h[0-9])[a-z]*-[^/]*$`)

// setNetwork sets the network, unless a template does.
func (c *cloud) setNetwork(made *compute.Instance) {
	if len(made.NetworkInterfaces) == 0 {
		nic := &compute.NetworkInterface{}
		if c.config.Subnetwork == "" {
			nic.Network = pathOf("global/networks/", c.config.Network)
		} else {
			nic.Subnetwork = pathOf("regions/"+c.config.Region+"/subnetworks/", c.config.Subnetwork)
		}
		if c.config.PublicAddress {
			nic.AccessConfigs = []*compute.AccessConfig{{Name: "public", Type: "ONE_TO_ONE_NAT"}}
		}
		made.NetworkInterfaces = []*compute.NetworkInterface{nic}
	}
	if len(c.config.NetworkTags) > 0 {
		made.Tags = &compute.Tags{Items: c.config.NetworkTags}
	}
}

// pathOf is a resource's path; a bare name is its end.
func pathOf(folder, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return folder + name
}

// template is in the words of the API's Instance.
var template = kit.Template{
	Hint:  `write JSON with the keys of Instance in the Compute Engine API; for example, {"minCpuPlatform": "Intel Ice Lake"}`,
	Given: []string{"name", "machineType", "disks.boot", "scheduling.provisioningModel", "scheduling.preemptible"},
	Use:   "use the cloud's image, disk and disk_type keys, and the pool's type and market keys",
}

// readTemplate reads a raw template.
func readTemplate(raw string) (*compute.Instance, error) {
	made := &compute.Instance{}
	if err := template.Read(raw, made); err != nil {
		return nil, err
	}
	for _, key := range []string{"startup-script", "user-data"} {
		if made.Metadata != nil && slices.ContainsFunc(made.Metadata.Items, func(i *compute.MetadataItems) bool { return i != nil && i.Key == key }) {
			return nil, drover.Errorf(drover.KindInvalid, "the template's metadata sets %s, which Drover sets", key).
				WithHint("put it into a file and write cloud_init: FILE; a script that begins with #cloud-boothook runs at every boot")
		}
	}
	return made, nil
}

// mergedItems merges both; of a key in both, the second's counts.
func mergedItems(first *compute.Metadata, second []*compute.MetadataItems) *compute.Metadata {
	all := &compute.Metadata{Items: second}
	for _, i := range kit.Value(first).Items {
		if i != nil && !slices.ContainsFunc(second, func(own *compute.MetadataItems) bool { return own.Key == i.Key }) {
			all.Items = append(all.Items, i)
		}
	}
	return all
}

// initFolder is where an instance notes which scripts have run.
const initFolder = "/var/lib/drover-init"

// metadata is what an instance reads at boot: the login key and the scripts. Neither the project's keys nor its
// members can log in.
func (c *cloud) metadata(r driver.CreateRequest) ([]*compute.MetadataItems, error) {
	all := []*compute.MetadataItems{
		item("block-project-ssh-keys", "TRUE"), item("enable-oslogin", "FALSE"), item("enable-guest-attributes", "TRUE"),
	}
	if r.PublicKey != "" {
		all = append(all, item("ssh-keys", c.config.User+":"+strings.TrimSpace(r.PublicKey)))
	}
	if c.config.Init == initCloud {
		all = append(all, item("user-data", kit.UserData(r).Reveal()))
	} else if scripts := kit.Scripts(r); len(scripts) > 0 {
		all = append(all, item("startup-script", startup(initFolder, scripts)))
	}
	for _, i := range all {
		if len(*i.Value) > maxUserData {
			return nil, drover.Errorf(drover.KindInvalid, "%s has %d bytes, more than Google's limit of %d", i.Key, len(*i.Value), maxUserData)
		}
	}
	return all, nil
}

func item(key, value string) *compute.MetadataItems {
	return &compute.MetadataItems{Key: key, Value: &value}
}

// startup is a startup script, which Google runs at every boot. It runs each script at the first boot only, and those
// that begin with #cloud-boothook every time. They are in base64, since they may contain anything.
func startup(folder string, scripts []drover.Secret) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
dir=%s
mkdir -p "$dir" && chmod 700 "$dir" || exit 1
always() {
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	rm -f "$dir/$1"
}
once() {
	[ -e "$dir/$1.done" ] && return
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	: >"$dir/$1.done"
	rm -f "$dir/$1"
}
`, folder)
	for i, s := range scripts {
		when, text := "once", s.Reveal()
		if hook, is := strings.CutPrefix(text, "#cloud-boothook"); is {
			_, rest, _ := strings.Cut(hook, "\n")
			when, text = "always", rest
		}
		fmt.Fprintf(&b, "%s %d <<'END'\n%s\nEND\n", when, i, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return b.String()
}
