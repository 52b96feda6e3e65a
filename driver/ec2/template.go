package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// template sees to it that the launch template, and the key pair in it, that the request needs are there, and returns its name. The name
// follows from the content, so controllers of one fleet, and one that begins anew, use the same.
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
	return name, errs.Classify("make launch template "+name, err)
}

// keyPair is the name of the key pair that lets the fleet log in; it is imported if need be.
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

// nameOf is what a shared resource of this content is called.
func (c *cloud) nameOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "drover-" + c.o.Fleet + "-" + hex.EncodeToString(sum[:8])
}

// once makes a shared resource unless it is known to be there. That another controller was first is as good.
func (c *cloud) once(ctx context.Context, name string, make func() error) error {
	_, err := c.made.Get(ctx, name, func() (none struct{}, err error) {
		if err = make(); errs.KindOf(err) == drover.KindConflict {
			return none, nil
		}
		return none, err
	})
	return err
}

// sharedTags are on what no single instance owns.
func (c *cloud) sharedTags(of types.ResourceType) []types.TagSpecification {
	tags := kit.MergeTags(c.config.Tags, map[string]string{driver.TagFleet: c.o.Fleet})
	return []types.TagSpecification{{ResourceType: of, Tags: tagsOf(tags)}}
}

// templateData is what a user's raw template says, and over it what Drover has to say.
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

// readTemplate reads a raw template, in the words of the API's RequestLaunchTemplateData.
func readTemplate(raw string) (*types.RequestLaunchTemplateData, error) {
	data := &types.RequestLaunchTemplateData{}
	hint := `it is JSON, with the keys of RequestLaunchTemplateData in the EC2 API, such as {"EbsOptimized": true}`
	if err := kit.DecodeTemplate(raw, data, hint); err != nil {
		return nil, err
	}
	if data.UserData != nil || data.ImageId != nil || data.InstanceType != "" || data.InstanceMarketOptions != nil {
		return nil, drover.Errorf(drover.KindInvalid, "the template says UserData, ImageId, InstanceType or InstanceMarketOptions, which Drover gives for each instance").
			WithHint("use image and cloud_init of the cloud, and let Drover choose types and markets")
	}
	return data, nil
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

// setNetwork says the security groups; together with a public address they have to be an interface's.
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
	data.Placement = &types.LaunchTemplatePlacementRequest{}
	if p.Group != "" {
		data.Placement.GroupName = &p.Group
	}
	if p.Partition > 0 {
		data.Placement.PartitionNumber = aws.Int32(int32(p.Partition))
	}
}
