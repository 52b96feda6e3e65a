package hetzner

import (
	"cmp"
	"context"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages finds Hetzner's images by name, such as debian-12, and the project's snapshots by description; it finds
// both by id.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	opts := hcloud.ImageListOpts{
		Type: []hcloud.ImageType{hcloud.ImageTypeSystem, hcloud.ImageTypeSnapshot}, Status: []hcloud.ImageStatus{hcloud.ImageStatusAvailable},
	}
	for theirs, ours := range architectures {
		if ours == arch {
			opts.Architecture = []hcloud.Architecture{theirs}
		}
	}
	images, err := pages(func(o hcloud.ListOpts) ([]*hcloud.Image, *hcloud.Response, error) {
		opts.ListOpts, opts.Sort = o, oldestFirst
		return c.api.Image.List(ctx, opts)
	})
	if err != nil {
		return nil, errs.Classify("list images", err)
	}
	var found []driver.Image
	for _, i := range images {
		name := i.Name
		if i.Type == hcloud.ImageTypeSnapshot {
			name = i.Description
		}
		id := strconv.FormatInt(i.ID, 10)
		if id == ref || kit.MatchGlob(ref, name) {
			found = append(found, driver.Image{ID: id, Name: name, Arch: cmp.Or(architectures[i.Architecture], "amd64"), Created: drover.TimeOf(i.Created)})
		}
	}
	return found, nil
}
