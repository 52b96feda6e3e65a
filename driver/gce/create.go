package gce

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// settleTime is how long an operation is awaited: Google says within seconds that a zone or a quota is used up. What it says later it says by
// an instance that is listed no longer.
const settleTime = 15 * time.Second

// resourceName is what an instance can be called.
var resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Create makes an instance of the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	var none driver.Candidate
	if err := c.check(r); err != nil {
		return driver.Instance{}, none, errs.Classify(doing, err)
	}
	taken := r.Candidates[0]
	made, err := c.resource(ctx, r, taken)
	if err != nil {
		return driver.Instance{}, none, errs.Classify(doing, err)
	}
	begun, err := c.api.insert(ctx, taken.Zone, c.token(r.Name, "insert"), made)
	err = c.settle(ctx, taken.Zone, begun, err)
	if errs.KindOf(err) == drover.KindConflict {
		in, err := c.recall(ctx, r, taken.Zone, made.Name)
		return in, in.Candidate(), errs.Classify(doing, err)
	}
	if err != nil {
		return driver.Instance{}, none, errs.ClassifyCreate(doing, taken.Market, err)
	}
	made.Zone, made.Status = taken.Zone, "PROVISIONING"
	in := c.instanceOf(made)
	in.Tags = labels.Read(made.Labels)
	return in, taken, nil
}

// check refuses what could never become an instance.
func (c *cloud) check(r driver.CreateRequest) error {
	if r.Name == "" {
		return drover.Errorf(drover.KindInvalid, "it has no name")
	}
	if len(r.Candidates) == 0 {
		return drover.Errorf(drover.KindInvalid, "no candidates")
	}
	candidate := r.Candidates[0]
	switch {
	case candidate.Image == "":
		return drover.Errorf(drover.KindInvalid, "no image is configured for %s", cmp.Or(string(candidate.Arch), candidate.ProviderType)).
			WithHint("write image: in the cloud's configuration, such as debian-cloud/family/debian-12")
	case !strings.HasPrefix(candidate.Zone, c.config.Region+"-"):
		return drover.Errorf(drover.KindInvalid, "zone %s is not in region %s", candidate.Zone, c.config.Region)
	case candidate.ProviderType == "" || strings.ContainsAny(candidate.ProviderType+candidate.Zone, "/?#"):
		return drover.Errorf(drover.KindInvalid, "%.80q in %.80q is no type in a zone", candidate.ProviderType, candidate.Zone)
	}
	return nil
}

// settle waits for an operation for a while, and says what became of it. One that goes on is well so far.
func (c *cloud) settle(ctx context.Context, zone string, begun *op, err error) error {
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for begun.Status != "DONE" {
		next, err := c.api.wait(short, zone, begun.Name)
		switch {
		case err == nil:
			begun = next
		case ctx.Err() == nil && short.Err() != nil, isLimit(err), errs.KindOf(err) == drover.KindNotFound: // it goes on, or is long over
			return nil
		default:
			return err
		}
	}
	return outcome(begun)
}

// isLimit reports whether a call was refused for its rate, by Google or here.
func isLimit(err error) bool {
	var refused *drover.Error
	return errs.KindOf(err) == drover.KindRateLimit || errors.As(err, &refused) && refused.Kind == drover.KindRateLimit
}

// token is the request id of a call: a UUID that follows from the instance's name, so that Google knows the call again.
func (c *cloud) token(name, call string) string {
	sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name + "/" + call))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80 // the form of a UUID that follows from a name (RFC 9562), which whoever checks UUIDs knows
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// named is what the instance of a name is called in Google's words: the same, if it can be.
func (c *cloud) named(name string) string {
	if resourceName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name))
	return "drover-" + hex.EncodeToString(sum[:16])
}

// recall finds the instance that was asked for before.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest, zone, name string) (driver.Instance, error) {
	found, err := c.api.get(ctx, zone, name)
	if errs.KindOf(err) == drover.KindNotFound {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "it was there a moment ago, and is not to be seen")
	}
	if err != nil {
		return driver.Instance{}, err
	}
	in := c.instanceOf(found)
	if in.Tags[driver.TagFleet] != r.Tags[driver.TagFleet] || in.Tags[driver.TagName] != r.Tags[driver.TagName] {
		return driver.Instance{}, drover.Errorf(drover.KindInvalid, "zone %s has an instance %s that is another's", zone, name)
	}
	return in, nil
}

// resource is the instance in the API's words: what a user's raw template says, and over it what Drover has to say.
func (c *cloud) resource(ctx context.Context, r driver.CreateRequest, as driver.Candidate) (*compute.Instance, error) {
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
	made.Labels = kit.MergeTags(made.Labels, c.withOwn(written))
	made.Metadata = mergedItems(made.Metadata, items)
	made.Disks = append([]*compute.AttachedDisk{boot}, made.Disks...)
	c.setScheduling(made, as.Market)
	c.setNetwork(made)
	if c.config.ServiceAccount != "" {
		made.ServiceAccounts = []*compute.ServiceAccount{{Email: c.config.ServiceAccount, Scopes: []string{scope}}}
	}
	return made, nil
}

// bootDisk is as large as is asked for, and at least as the image. It goes with the instance.
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
			SourceImage: as.Image, Labels: c.withOwn(written), DiskSizeGb: size.WholeGiB(),
			DiskType: "zones/" + as.Zone + "/diskTypes/" + c.diskType(as.ProviderType),
		},
	}, nil
}

// setScheduling says how the instance is bought and what ends it. A spot instance that is taken back stays, stopped, so that it is seen; with
// an end of its own it is deleted in either case.
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

// stays are the types that do not move to another host: those with GPUs and those for supercomputing.
var stays = regexp.MustCompile(`/(a[0-9]|g[2-9]|h[0-9])[a-z]*-[^/]*$`)

// setNetwork says where the instance is, unless a template does.
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

// pathOf is a resource's path, of which a mere name says the end alone.
func pathOf(folder, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return folder + name
}
