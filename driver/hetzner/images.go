package hetzner

import (
	"context"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages finds Hetzner's images by their names, such as debian-12, and the project's snapshots by their descriptions; either by id.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	opts := hcloud.ImageListOpts{
		Type: []hcloud.ImageType{hcloud.ImageTypeSystem, hcloud.ImageTypeSnapshot}, Status: []hcloud.ImageStatus{hcloud.ImageStatusAvailable},
	}
	switch arch {
	case "amd64":
		opts.Architecture = []hcloud.Architecture{hcloud.ArchitectureX86}
	case "arm64":
		opts.Architecture = []hcloud.Architecture{hcloud.ArchitectureARM}
	}
	images, err := c.api.Image.AllWithOpts(ctx, opts)
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
			found = append(found, driver.Image{ID: id, Name: name, Arch: archOf(i.Architecture), Created: drover.TimeOf(i.Created)})
		}
	}
	return found, nil
}
