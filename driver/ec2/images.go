package ec2

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// image is what a create call needs to know about an image.
type image struct {
	root string       // the name of its root device
	size drover.Bytes // of its root volume, which no instance's can be smaller than
}

// FindImages reads ami-… as an id, ssm:NAME as a parameter of Systems Manager that holds one, and anything else as
// [OWNER/]NAME, where the owner is an account's number, self, amazon or aws-marketplace. Without an owner only images
// of self and amazon count, since anybody may use any name.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	in, err := c.imageQuery(ctx, ref, arch)
	if err != nil {
		return nil, err
	}
	found, err := call(ctx, c.api, c.api.ec2().DescribeImages, in)
	if errs.CodeOf(err) == "InvalidAMIID.NotFound" {
		return nil, nil
	}
	return kit.Each(found.Images, func(i types.Image) driver.Image {
		id, created := aws.ToString(i.ImageId), kit.ReadTime(aws.ToString(i.CreationDate))
		c.images.Learn(id, imageOf(i))
		return driver.Image{ID: id, Name: aws.ToString(i.Name), Arch: architectures[i.Architecture], Created: created}
	}), errs.Classify("look for image "+ref, err)
}

// imageQuery is the call that finds what a reference means.
func (c *cloud) imageQuery(ctx context.Context, ref string, arch drover.Arch) (*ec2.DescribeImagesInput, error) {
	id := ref
	if name, ok := strings.CutPrefix(strings.TrimPrefix(ref, "resolve:"), "ssm:"); ok {
		out, err := call(ctx, c.api, c.api.parameters().GetParameter, &GetParameterInput{name})
		if err != nil {
			return nil, errs.Classify("read parameter "+name, err)
		}
		if id = out.Parameter.Value; !strings.HasPrefix(id, "ami-") {
			return nil, drover.Errorf(drover.KindInvalid, "parameter %s does not contain an image id", name)
		}
	}
	if strings.HasPrefix(id, "ami-") {
		return &ec2.DescribeImagesInput{ImageIds: []string{id}}, nil
	}
	owners, name := []string{"self", "amazon"}, ref
	if owner, rest, ok := strings.Cut(ref, "/"); ok {
		owners, name = []string{owner}, rest
	}
	filters := []types.Filter{filter("name", name), filter("state", "available")}
	for theirs, ours := range architectures {
		if ours == arch {
			filters = append(filters, filter("architecture", string(theirs)))
		}
	}
	return &ec2.DescribeImagesInput{Owners: owners, Filters: filters}, nil
}

func imageOf(i types.Image) image {
	what := image{root: aws.ToString(i.RootDeviceName)}
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToString(m.DeviceName) == what.root {
			what.size = drover.Bytes(aws.ToInt32(m.Ebs.VolumeSize)) * drover.GiB
		}
	}
	return what
}

// image describes an image. An image with a given id never changes, so it is asked once.
func (c *cloud) image(ctx context.Context, id string) (image, error) {
	return c.images.Get(ctx, id, func() (image, error) {
		out, err := call(ctx, c.api, c.api.ec2().DescribeImages, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		if err != nil {
			return image{}, errs.Classify("look at image "+id, err)
		}
		if len(out.Images) == 0 {
			return image{}, drover.Errorf(drover.KindInvalid, "there is no image %s in %s", id, c.api.config.Region)
		}
		return imageOf(out.Images[0]), nil
	})
}
