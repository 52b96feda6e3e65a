package gce

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"drover"
	"drover/driver"
)

// reference is what a configured image means.
type reference struct{ project, family, name string }

// imagePath is [projects/]PROJECT/[global/images/][family/]NAME, in which all but the name may be missing; * in the name stands for any text.
var imagePath = regexp.MustCompile(`^(?:(?:projects/)?([a-z][a-z0-9.:-]*)/)?(?:global/images/)?(family/)?([a-z*][a-z0-9*-]*)$`)

func (c *cloud) reference(ref string) (r reference, err error) {
	m := imagePath.FindStringSubmatch(ref)
	if m == nil || m[1] == "family" || m[2] != "" && strings.Contains(m[3], "*") {
		m = imagePath.FindStringSubmatch(c.api.project + "/" + ref)
	}
	if m == nil || m[2] != "" && strings.Contains(m[3], "*") {
		return r, drover.Errorf(drover.KindInvalid, "image %.100q is none", ref).
			WithHint("write [PROJECT/]family/FAMILY or [PROJECT/]NAME, such as debian-cloud/family/debian-12 or debian-cloud/debian-12-bookworm-v*")
	}
	r.project = m[1]
	if r.project == "" {
		r.project = c.api.project
	}
	if r.name = m[3]; m[2] != "" {
		r.family, r.name = m[3], ""
	}
	return r, nil
}

// filter finds what is meant.
func (r reference) filter() string {
	switch {
	case r.family != "":
		return fmt.Sprintf("family = %q", r.family)
	case strings.Contains(r.name, "*"):
		return fmt.Sprintf("name eq %q", strings.ReplaceAll(r.name, "*", ".*"))
	}
	return fmt.Sprintf("name = %q", r.name)
}

// FindImages reads [PROJECT/]family/FAMILY and [PROJECT/]NAME; without a project it is the cloud's. Images that their makers call outdated count
// only by their whole name.
func (c *cloud) FindImages(ctx context.Context, ref string, arch drover.Arch) ([]driver.Image, error) {
	r, err := c.reference(ref)
	if err != nil {
		return nil, err
	}
	found, err := c.api.images(ctx, r.project, r.filter())
	if err != nil {
		return nil, errs.Classify("look for image "+ref, err)
	}
	var all []driver.Image
	for _, i := range found {
		if old := i.Deprecated != nil && i.Deprecated.State != "" && i.Deprecated.State != "ACTIVE"; old && i.Name != r.name {
			continue
		}
		id := "projects/" + r.project + "/global/images/" + i.Name
		c.mu.Lock()
		c.images[id] = drover.Bytes(i.DiskSizeGb) * drover.GiB
		c.mu.Unlock()
		all = append(all, driver.Image{ID: id, Name: i.Name, Arch: archOf(i.Architecture), Created: at(i.CreationTimestamp)})
	}
	return all, nil
}

// archOf is an architecture in our words. Of what says nothing, it is any.
func archOf(a string) drover.Arch {
	switch a {
	case "X86_64":
		return "amd64"
	case "ARM64":
		return "arm64"
	}
	return ""
}

// imageSize is how large an image is, which no instance's disk can be smaller than. What an id stands for never changes, so it is asked once.
func (c *cloud) imageSize(ctx context.Context, id string) (drover.Bytes, error) {
	c.mu.Lock()
	size, ok := c.images[id]
	c.mu.Unlock()
	if ok {
		return size, nil
	}
	found, err := c.FindImages(ctx, id, "")
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, drover.Errorf(drover.KindInvalid, "there is no image %s", id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images[found[0].ID], nil
}
