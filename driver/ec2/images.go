package ec2

import (
	"context"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// image is what the driver reads from an image.
type image struct {
	ID      string   `xml:"imageId"`
	Name    string   `xml:"name"`
	Arch    string   `xml:"architecture"`
	Created string   `xml:"creationDate"`
	Root    string   `xml:"rootDeviceName"`
	Devices []device `xml:"blockDeviceMapping>item"`
}

// size returns the size of the root volume, the minimum for an instance's.
func (i image) size() (size drover.Bytes) {
	for _, d := range i.Devices {
		if d.Name == i.Root {
			size = drover.Bytes(d.GiB) * drover.GiB
		}
	}
	return size
}

// FindImages reads ami-… as an id, ssm:NAME as a parameter of Systems Manager that contains one, and anything else as
// [OWNER/]NAME, where the owner is an account's number, self, amazon or aws-marketplace. Without an owner only images
// of self and amazon count, since anybody may use any name.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	in, err := c.imageQuery(ctx, ref, arch)
	if err != nil {
		return nil, err
	}
	found, err := listAll[image](ctx, c.api, "DescribeImages", "imagesSet>item", in)
	if errs.CodeOf(err) == "InvalidAMIID.NotFound" {
		return nil, nil
	}
	return kit.Each(found, func(i image) driver.Image {
		c.images.Learn(i.ID, i)
		return driver.Image{ID: i.ID, Name: i.Name, Arch: architectures[i.Arch], Created: kit.ReadTime(i.Created)}
	}), errs.Classify("look for image "+ref, err)
}

// imageQuery returns the parameters of the call that resolves a reference.
func (c *cloud) imageQuery(ctx context.Context, ref string, arch drover.Arch) (params, error) {
	id := ref
	if name, ok := strings.CutPrefix(strings.TrimPrefix(ref, "resolve:"), "ssm:"); ok {
		var out struct{ Parameter struct{ Value string } }
		if err := c.api.do(ctx, "GetParameter", params{"Name": name}, &out); err != nil {
			return nil, errs.Classify("read parameter "+name, err)
		}
		if id = out.Parameter.Value; !strings.HasPrefix(id, "ami-") {
			return nil, drover.Errorf(drover.KindInvalid, "parameter %s does not contain an image id", name)
		}
	}
	if strings.HasPrefix(id, "ami-") {
		return params{"ImageIds": []string{id}}, nil
	}
	owners, name := []string{"self", "amazon"}, ref
	if owner, rest, ok := strings.Cut(ref, "/"); ok {
		owners, name = []string{owner}, rest
	}
	filters := []params{filter("name", name), filter("state", "available")}
	for theirs, ours := range architectures {
		if ours == arch {
			filters = append(filters, filter("architecture", theirs))
		}
	}
	return params{"Owners": owners, "Filters": filters}, nil
}

// image describes an image. An image with a given id never changes, so it is queried once.
func (c *cloud) image(ctx context.Context, id string) (image, error) {
	return c.images.Get(ctx, id, func() (image, error) {
		found, err := listAll[image](ctx, c.api, "DescribeImages", "imagesSet>item", params{"ImageIds": []string{id}})
		if err != nil {
			return image{}, errs.Classify("describe image "+id, err)
		}
		if len(found) == 0 {
			return image{}, drover.Errorf(drover.KindInvalid, "there is no image %s in %s", id, c.api.config.Region)
		}
		return found[0], nil
	})
}
