package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxOverrides is how many candidates one call accepts: see "Fleet quotas" in Amazon's guide to EC2.
const maxOverrides = 300

// nameTag is the tag that the AWS tools show as an instance's name.
const nameTag = "Name"

// defaultVolume is the volume type if none is configured: the cheapest of its speed.
const defaultVolume = "gp3"

// longestName is well within the limit of a tag.
const longestName = 128

// demands are what EC2 requires of every create call.
var demands = kit.Demands{
	Longest: longestName, Image: "ami-0123456789abcdef0 or ssm:/aws/service/debian/release/12/latest/amd64", UserData: maxUserData,
}

// Create makes an instance by an instant fleet from the candidates of the first market and, if none of these is
// available, from those of the next.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	s, err := c.prepare(ctx, r)
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, errs.Classify(doing, err)
	}
	var refused []*drover.Error
	for i, group := range byMarket(r.Candidates) {
		in, err := c.launch(ctx, s, i, group)
		if err == nil {
			return in, in.Candidate(), nil
		}
		err = errs.ClassifyIn(doing, group[0].Market, err)
		if !kit.TryNext(err) {
			return driver.Instance{}, driver.Candidate{}, err
		}
		refused = append(refused, drover.AsError(err, drover.KindTransient))
	}
	return driver.Instance{}, driver.Candidate{}, kit.MostSevere(refused)
}

// byMarket splits the candidates where the market changes, since a fleet of one instance has one market.
func byMarket(all []driver.Candidate) (groups [][]driver.Candidate) {
	for i, candidate := range all {
		if i == 0 || candidate.Market != all[i-1].Market {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], candidate)
	}
	return groups
}

// supply is what all calls for one instance need.
type supply struct {
	driver.CreateRequest
	template string
	userData string
	tags     []types.Tag
	subnets  []subnet
	images   map[string]image
}

func (c *cloud) prepare(ctx context.Context, r driver.CreateRequest) (s supply, err error) {
	if err := kit.CheckRequest(r, demands); err != nil {
		return s, err
	}
	s = supply{
		CreateRequest: r, images: map[string]image{}, userData: base64.StdEncoding.EncodeToString([]byte(kit.UserData(r).Reveal())),
		tags: tagsOf(kit.MergeTags(c.config.Tags, map[string]string{nameTag: r.Name}, r.Tags)),
	}
	for _, candidate := range r.Candidates {
		if s.images[candidate.Image], err = c.image(ctx, candidate.Image); err != nil {
			return s, err
		}
	}
	if s.subnets, err = c.subnets.Get(ctx); err != nil {
		return s, err
	}
	s.template, err = c.template(ctx, r)
	return s, err
}

// launch makes one call for the instance, the turn-th.
func (c *cloud) launch(ctx context.Context, s supply, turn int, candidates []driver.Candidate) (in driver.Instance, err error) {
	overrides, err := c.overrides(s, candidates)
	if err != nil {
		return in, err
	}
	out, err := call(ctx, c.api, c.api.ec2().CreateFleet, c.fleetRequest(s, turn, candidates[0].Market, overrides))
	switch errs.KindOf(err) {
	case drover.KindConflict:
		return c.recall(ctx, s.CreateRequest)
	case drover.KindNotFound:
		c.made.Forget()
		return in, drover.Errorf(drover.KindTransient, "the launch template is not visible yet: %v", err)
	}
	if err != nil {
		return in, err
	}
	for _, made := range out.Instances {
		if len(made.InstanceIds) > 0 {
			in = s.instance(made)
			in.Market = candidates[0].Market
			return in, nil
		}
	}
	return in, refusals(candidates[0].Market, out.Errors)
}

// fleetRequest requests an instant fleet of one instance. Equal requests have equal tokens.
func (c *cloud) fleetRequest(s supply, turn int, m drover.Market, overrides []types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type:        types.FleetTypeInstant,
		ClientToken: aws.String(c.token(s.Name, turn)),
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: &s.template, Version: aws.String("1"), LaunchTemplateSpecificationUserData: &s.userData,
			},
			Overrides: overrides,
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1)},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: s.tags},
			{ResourceType: types.ResourceTypeVolume, Tags: s.tags},
		},
	}
	if m == drover.Spot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{
			AllocationStrategy: types.SpotAllocationStrategy(c.config.SpotBy), InstanceInterruptionBehavior: types.SpotInstanceInterruptionBehaviorTerminate,
		}
	} else {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeOnDemand
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyPrioritized}
	}
	return in
}

// token is the client token of a call, at most 64 characters.
func (c *cloud) token(name string, turn int) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s/%s/%d", c.o.Fleet, name, turn)))
	return "drover-" + hex.EncodeToString(sum[:16])
}

// overrides are the candidates, each in every subnet of its zone.
func (c *cloud) overrides(s supply, candidates []driver.Candidate) (all []types.FleetLaunchTemplateOverridesRequest, err error) {
	for i, candidate := range candidates {
		for _, sub := range s.subnets {
			if sub.Zone != candidate.Zone || len(all) == maxOverrides {
				continue
			}
			all = append(all, types.FleetLaunchTemplateOverridesRequest{
				InstanceType:        types.InstanceType(candidate.ProviderType),
				SubnetId:            aws.String(sub.ID),
				ImageId:             aws.String(candidate.Image),
				Priority:            aws.Float64(float64(i)),
				BlockDeviceMappings: c.volumes(s.images[candidate.Image], s.Disk),
			})
		}
	}
	if len(all) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "there is no subnet in zone %s", candidates[0].Zone)
	}
	return all, nil
}

// volumes are the root volume, at least as large as requested, and the configured additional ones.
func (c *cloud) volumes(i image, disk drover.Bytes) (all []types.FleetBlockDeviceMappingRequest) {
	root := c.config.Volume
	root.Device, root.Size = i.root, max(disk, i.size)
	for _, v := range slices.Concat([]volume{root}, c.config.Volumes) {
		if v.Device != "" {
			all = append(all, types.FleetBlockDeviceMappingRequest{DeviceName: aws.String(v.Device), Ebs: v.ebs()})
		}
	}
	return all
}

func (v volume) ebs() *types.FleetEbsBlockDeviceRequest {
	return &types.FleetEbsBlockDeviceRequest{
		DeleteOnTermination: aws.Bool(true), Encrypted: aws.Bool(v.Encrypted == nil || *v.Encrypted), VolumeType: types.VolumeType(cmp.Or(v.Type, defaultVolume)),
		VolumeSize: kit.Given(int32(v.Size.WholeGiB())), Iops: kit.Given(int32(v.IOPS)), Throughput: kit.Given(int32(v.Throughput)),
		KmsKeyId: kit.Given(v.Key),
	}
}

// instance translates the answer to the call.
func (s supply) instance(made types.CreateFleetInstance) driver.Instance {
	in := driver.Instance{ID: made.InstanceIds[0], Tags: fromTags(s.tags), ProviderType: string(made.InstanceType), State: driver.Pending,
		Zone: aws.ToString(made.AvailabilityZone)}
	o := kit.Value(kit.Value(made.LaunchTemplateAndOverrides).Overrides)
	in.ProviderType = cmp.Or(in.ProviderType, string(o.InstanceType))
	in.Zone = cmp.Or(in.Zone, s.zoneOf(made.SubnetId), aws.ToString(o.AvailabilityZone), s.zoneOf(o.SubnetId))
	return in
}

func (s supply) zoneOf(id *string) string {
	for _, sub := range s.subnets {
		if sub.ID == aws.ToString(id) {
			return sub.Zone
		}
	}
	return ""
}

// recall finds an instance that was requested before with other candidates.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	all, err := c.List(ctx, map[string]string{driver.TagFleet: r.Tags[driver.TagFleet], driver.TagName: r.Tags[driver.TagName]})
	if err == nil && len(all) == 0 {
		err = drover.Errorf(drover.KindTransient, "it was requested earlier with other candidates and is not visible yet")
	}
	if err != nil {
		return driver.Instance{}, err
	}
	return all[0], nil
}

// template ensures that the request's launch template and its key pair exist, and returns the template's name. The
// name derives from the content, so all controllers of one fleet use the same.
func (c *cloud) template(ctx context.Context, r driver.CreateRequest) (string, error) {
	key, err := c.keyPair(ctx, r.PublicKey)
	if err != nil {
		return "", err
	}
	data, err := c.templateData(r.Template, key)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(data)
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "write the launch template: %v", err)
	}
	name := c.nameOf(string(content))
	err = c.once(ctx, name, func() error {
		_, err := call(ctx, c.api, c.api.ec2().CreateLaunchTemplate, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: &name, LaunchTemplateData: data, TagSpecifications: c.sharedTags(types.ResourceTypeLaunchTemplate),
		})
		return err
	})
	return name, errs.Classify("create launch template "+name, err)
}

// keyPair is the name of the fleet's key pair, which it imports if necessary.
func (c *cloud) keyPair(ctx context.Context, public string) (string, error) {
	if c.config.KeyPair != "" || public == "" {
		return c.config.KeyPair, nil
	}
	name := c.nameOf(public)
	err := c.once(ctx, name, func() error {
		_, err := call(ctx, c.api, c.api.ec2().ImportKeyPair, &ec2.ImportKeyPairInput{
			KeyName: &name, PublicKeyMaterial: []byte(strings.TrimSpace(public)), TagSpecifications: c.sharedTags(types.ResourceTypeKeyPair),
		})
		return err
	})
	return name, errs.Classify("import key pair "+name, err)
}

// nameOf is the name of a shared resource with this content.
func (c *cloud) nameOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "drover-" + c.o.Fleet + "-" + hex.EncodeToString(sum[:8])
}

// once creates a shared resource unless it is known to exist. It succeeds if another controller was first.
func (c *cloud) once(ctx context.Context, name string, make func() error) error {
	_, err := c.made.Get(ctx, name, func() (none struct{}, err error) {
		if err = make(); errs.KindOf(err) == drover.KindConflict {
			return none, nil
		}
		return none, err
	})
	return err
}

// sharedTags are the tags of shared resources.
func (c *cloud) sharedTags(of types.ResourceType) []types.TagSpecification {
	tags := kit.MergeTags(c.config.Tags, map[string]string{driver.TagFleet: c.o.Fleet})
	return []types.TagSpecification{{ResourceType: of, Tags: tagsOf(tags)}}
}

// templateData is the user's raw template with Drover's values on top.
func (c *cloud) templateData(raw, key string) (*types.RequestLaunchTemplateData, error) {
	data, err := readTemplate(raw)
	if err != nil {
		return nil, err
	}
	data.InstanceInitiatedShutdownBehavior = types.ShutdownBehaviorTerminate
	if data.MetadataOptions == nil {
		data.MetadataOptions = &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpPutResponseHopLimit: aws.Int32(int32(c.config.MetadataHops))}
	}
	data.MetadataOptions.HttpTokens = types.LaunchTemplateHttpTokensStateRequired
	data.MetadataOptions.HttpEndpoint = types.LaunchTemplateInstanceMetadataEndpointStateEnabled
	if key != "" {
		data.KeyName = &key
	}
	c.setProfile(data)
	c.setNetwork(data)
	c.setPlacement(data)
	return data, nil
}

// template is in the words of the API's RequestLaunchTemplateData.
var template = kit.Template{
	Hint:  `write JSON with the keys of RequestLaunchTemplateData in the EC2 API; for example, {"EbsOptimized": true}`,
	Given: []string{"UserData", "ImageId", "InstanceType", "InstanceMarketOptions"},
	Use:   "use the cloud's image and cloud_init keys, and let Drover choose types and markets",
}

// readTemplate reads a raw template.
func readTemplate(raw string) (*types.RequestLaunchTemplateData, error) {
	data := &types.RequestLaunchTemplateData{}
	return data, template.Read(raw, data)
}

func (c *cloud) setProfile(data *types.RequestLaunchTemplateData) {
	switch p := c.config.InstanceProfile; {
	case p == "":
	case strings.HasPrefix(p, "arn:"):
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Arn: &p}
	default:
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &p}
	}
}

// setNetwork sets the security groups; with a public address they must be in the interface.
func (c *cloud) setNetwork(data *types.RequestLaunchTemplateData) {
	switch {
	case c.config.PublicAddress != nil:
		data.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
			DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: c.config.PublicAddress, Groups: c.config.SecurityGroups, DeleteOnTermination: aws.Bool(true),
		}}
	case len(c.config.SecurityGroups) > 0:
		data.SecurityGroupIds = c.config.SecurityGroups
	}
}

func (c *cloud) setPlacement(data *types.RequestLaunchTemplateData) {
	p := c.config.Placement
	if p == (placement{}) {
		return
	}
	data.Placement = &types.LaunchTemplatePlacementRequest{GroupName: kit.Given(p.Group), PartitionNumber: kit.Given(int32(p.Partition))}
}
