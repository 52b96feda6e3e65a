package gce

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// reference is a parsed reference to images.
type reference struct{ project, family, name string }

// imagePath is [projects/]PROJECT/[global/images/][family/]NAME, where everything but the name is optional; * in the
// name matches any text.
var imagePath = regexp.MustCompile(`^(?:(?:projects/)?([a-z][a-z0-9.:-]*)/)?(?:global/images/)?(family/)?([a-z*][a-z0-9*-]*)$`)

func (c *cloud) reference(ref string) (r reference, err error) {
	m := imagePath.FindStringSubmatch(ref)
	if m == nil || m[1] == "family" || m[2] != "" && strings.Contains(m[3], "*") {
		m = imagePath.FindStringSubmatch(c.api.project + "/" + ref)
	}
	if m == nil || m[2] != "" && strings.Contains(m[3], "*") {
		return r, drover.Errorf(drover.KindInvalid, "image: %.100q is not valid", ref).
			WithHint("write [PROJECT/]family/FAMILY or [PROJECT/]NAME, such as debian-cloud/family/debian-12 or debian-cloud/debian-12-bookworm-v*")
	}
	r.project = cmp.Or(m[1], c.api.project)
	if r.name = m[3]; m[2] != "" {
		r.family, r.name = m[3], ""
	}
	return r, nil
}

// filter returns a filter for the images that r refers to.
func (r reference) filter() string {
	switch {
	case r.family != "":
		return fmt.Sprintf("family = %q", r.family)
	case strings.Contains(r.name, "*"):
		return fmt.Sprintf("name eq %q", strings.ReplaceAll(r.name, "*", ".*"))
	}
	return fmt.Sprintf("name = %q", r.name)
}

// FindImages reads [PROJECT/]family/FAMILY and [PROJECT/]NAME; the default project is the cloud's. Deprecated images
// count only by their full name.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	r, err := c.reference(ref)
	if err != nil {
		return nil, err
	}
	found, err := c.imagesOf(ctx, r)
	return kit.Each(found, func(i resource) driver.Image {
		id := "projects/" + r.project + "/global/images/" + i.Name
		c.images.Learn(id, drover.Bytes(i.DiskSizeGb)*drover.GiB)
		return driver.Image{ID: id, Name: i.Name, Arch: architectures[i.Architecture], Created: kit.ReadTime(i.CreationTimestamp)}
	}), errs.Classify("look for image "+ref, err)
}

// imagesOf returns the images that a reference matches.
func (c *cloud) imagesOf(ctx context.Context, r reference) ([]resource, error) {
	all, err := list(ctx, c.api, "images.list", r.project, items[resource], "filter", r.filter())
	return slices.DeleteFunc(all, func(i resource) bool { return i.old() && i.Name != r.name }), err
}

// architectures translates Google's names. No name means any architecture.
var architectures = map[string]drover.Arch{"X86_64": "amd64", "ARM64": "arm64"}

// imageSize returns the size of an image, the minimum for an instance's disk. An image with a given id never changes,
// so it is queried once.
func (c *cloud) imageSize(ctx context.Context, id string) (drover.Bytes, error) {
	return c.images.Get(ctx, id, func() (drover.Bytes, error) {
		r, err := c.reference(id)
		if err != nil {
			return 0, err
		}
		found, err := c.imagesOf(ctx, r)
		if err == nil && len(found) == 0 {
			err = drover.Errorf(drover.KindInvalid, "there is no image %s", id)
		}
		if err != nil {
			return 0, errs.Classify("look for image "+id, err)
		}
		return drover.Bytes(found[0].DiskSizeGb) * drover.GiB, nil
	})
}
