package azure

import (
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime/datetime"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages reads PUBLISHER:OFFER:SKU:VERSION as a marketplace image, a resource id as a managed or gallery image, and
// GALLERY/IMAGE[/VERSION] as an image in a gallery of the image group. For all these Azure itself picks the latest
// version if none is named, so the driver makes no call. Anything else is the name of a managed image in that group,
// where * matches any text.
func (c *cloud) FindImages(ctx context.Context, ref string, _ drover.Arch) ([]driver.Image, error) {
	if strings.HasPrefix(ref, "/") || strings.Count(ref, ":") == 3 {
		return []driver.Image{{ID: ref, Name: ref}}, nil
	}
	if gallery, image, ok := strings.Cut(ref, "/"); ok {
		image, version, versioned := strings.Cut(image, "/")
		id := c.config.resource(c.config.imageGroup(), "Microsoft.Compute/galleries", gallery+"/images/"+image)
		if versioned {
			id += "/versions/" + version
		}
		return []driver.Image{{ID: id, Name: ref}}, nil
	}
	found, err := list[struct {
		ID, Name, Location string
		SystemData         struct{ CreatedAt *datetime.RFC3339 }
	}](ctx, c.api, "ListImages")
	if err != nil {
		return nil, errs.Classify("look for image "+ref, err)
	}
	var all []driver.Image
	for _, i := range found {
		if kit.MatchGlob(strings.ToLower(ref), strings.ToLower(i.Name)) && strings.EqualFold(i.Location, c.config.Location) {
			all = append(all, driver.Image{ID: i.ID, Name: i.Name, Created: drover.TimeOf(time.Time(kit.Value(i.SystemData.CreatedAt)))})
		}
	}
	return all, nil
}

// imageOf returns an image's id in the form of the create call.
func imageOf(id string) object {
	if part := strings.Split(id, ":"); len(part) == 4 && !strings.HasPrefix(id, "/") {
		return object{"publisher": part[0], "offer": part[1], "sku": part[2], "version": part[3]}
	}
	switch lower := strings.ToLower(id); {
	case strings.HasPrefix(lower, "/communitygalleries/"):
		return object{"communityGalleryImageId": id}
	case strings.HasPrefix(lower, "/sharedgalleries/"):
		return object{"sharedGalleryImageId": id}
	}
	return object{"id": id}
}
