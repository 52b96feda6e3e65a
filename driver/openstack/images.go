package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages reads a UUID as an id, and anything else as a name, where * matches any text. The project sees the
// cloud's images, its own, and those that it has accepted from others.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	found, err := c.lookFor(ctx, ref)
	return kit.Each(found, func(i images.Image) driver.Image {
		c.images.Learn(i.ID, volumeFor(i))
		return driver.Image{ID: i.ID, Name: i.Name, Arch: archOf(i), Created: drover.TimeOf(i.CreatedAt)}
	}), errs.Classify("look for image "+ref, err)
}

func (c *cloud) lookFor(ctx context.Context, ref string) ([]images.Image, error) {
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
	return slices.DeleteFunc(found, func(i images.Image) bool { return !kit.MatchGlob(ref, i.Name) }), err
}

// archOf returns the image's architecture, empty if the image does not specify it.
func archOf(i images.Image) drover.Arch {
	architectures := map[string]drover.Arch{"x86_64": "amd64", "aarch64": "arm64"}
	wanted, _ := i.Properties["hw_architecture"].(string)
	said, _ := i.Properties["architecture"].(string)
	return cmp.Or(architectures[wanted], architectures[said])
}

// volumeFor returns the size in GiB of the smallest volume that holds an image; 0 if unknown.
func volumeFor(i images.Image) int {
	return max(i.MinDiskGigabytes, int(drover.Bytes(i.VirtualSize).WholeGiB()))
}

// imageSize returns volumeFor of the image with an id. An image with a given id never changes, so it is queried once.
func (c *cloud) imageSize(ctx context.Context, id string) (int, error) {
	return c.images.Get(ctx, id, func() (int, error) {
		found, err := c.api.getImage(ctx, id)
		if errs.StatusOf(err) == http.StatusNotFound {
			return 0, drover.Errorf(drover.KindInvalid, "there is no image %s", id)
		}
		if err != nil {
			return 0, errs.Classify("describe image "+id, err)
		}
		return volumeFor(*found), nil
	})
}
