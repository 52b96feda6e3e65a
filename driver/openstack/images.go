package openstack

import (
	"context"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages reads a UUID as an id, and anything else as a name, in which * stands for any text. What the project sees is the cloud's, its own,
// and what it has accepted from others: nobody can slip another one in.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) (all []driver.Image, err error) {
	found, err := c.lookFor(ctx, ref)
	if err != nil {
		return nil, errs.Classify("look for image "+ref, err)
	}
	for _, i := range found {
		c.images.Learn(i.ID, volumeFor(i))
		all = append(all, driver.Image{ID: i.ID, Name: i.Name, Arch: archOf(i), Created: drover.TimeOf(i.CreatedAt)})
	}
	return all, nil
}

func (c *cloud) lookFor(ctx context.Context, ref string) (all []images.Image, err error) {
	switch {
	case uuid.MatchString(ref):
		one, err := c.api.getImage(ctx, ref)
		if errs.StatusOf(err) == http.StatusNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []images.Image{*one}, nil
	case !strings.Contains(ref, "*"):
		return c.api.listImages(ctx, ref)
	}
	found, err := c.api.listImages(ctx, "")
	for _, i := range found {
		if kit.MatchGlob(ref, i.Name) {
			all = append(all, i)
		}
	}
	return all, err
}

// archOf is the architecture in our words, empty if the image does not say.
func archOf(i images.Image) drover.Arch {
	for _, key := range []string{"hw_architecture", "architecture"} {
		switch i.Properties[key] {
		case "x86_64":
			return "amd64"
		case "aarch64":
			return "arm64"
		}
	}
	return ""
}

// volumeFor is how large the smallest volume is that holds an image, in GiB; 0 if the cloud does not say.
func volumeFor(i images.Image) int {
	return max(i.MinDiskGigabytes, int(drover.Bytes(i.VirtualSize).WholeGiB()))
}

// imageSize is volumeFor an image by its id. What an id stands for never changes, so it is asked once.
func (c *cloud) imageSize(ctx context.Context, id string) (int, error) {
	return c.images.Get(ctx, id, func() (int, error) {
		found, err := c.api.getImage(ctx, id)
		if errs.StatusOf(err) == http.StatusNotFound {
			return 0, drover.Errorf(drover.KindInvalid, "there is no image %s", id)
		}
		if err != nil {
			return 0, errs.Classify("look at image "+id, err)
		}
		return volumeFor(*found), nil
	})
}
