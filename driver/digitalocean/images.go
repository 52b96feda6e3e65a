package digitalocean

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// FindImages finds an image by its number, by DigitalOcean's name (such as ubuntu-24-04-x64), or by the user's name.
func (c *cloud) FindImages(ctx context.Context, ref string, _ drover.Arch) ([]driver.Image, error) {
	if !strings.Contains(ref, "*") {
		one, err := c.image(ctx, ref)
		if err != nil || one != nil {
			return one, err
		}
	}
	return c.imagesLike(ctx, ref)
}

// image returns the image with a number or public name, if there is one.
func (c *cloud) image(ctx context.Context, ref string) ([]driver.Image, error) {
	get := func() (*godo.Image, *godo.Response, error) { return c.api.Images.GetBySlug(ctx, url.PathEscape(ref)) }
	if n, ok := number(ref); ok {
		get = func() (*godo.Image, *godo.Response, error) { return c.api.Images.GetByID(ctx, n) }
	}
	found, _, err := get()
	if err == nil && found == nil {
		err = errors.New("the response contains no image")
	}
	if err != nil {
		return nil, errs.Gone("look for image "+ref, err)
	}
	return []driver.Image{imageFrom(*found)}, nil
}

// imagesLike returns the public and the user's images whose names match.
func (c *cloud) imagesLike(ctx context.Context, ref string) (all []driver.Image, err error) {
	for _, list := range []func(context.Context, *godo.ListOptions) ([]godo.Image, *godo.Response, error){c.api.Images.ListUser, c.api.Images.ListDistribution} {
		some, err := pages(ctx, list)
		if err != nil {
			return nil, errs.Classify("list images", err)
		}
		for _, i := range some {
			if kit.MatchGlob(ref, i.Name) || kit.MatchGlob(ref, i.Slug) {
				all = append(all, imageFrom(i))
			}
		}
	}
	return all, nil
}

func imageFrom(i godo.Image) driver.Image {
	return driver.Image{ID: strconv.Itoa(i.ID), Name: cmp.Or(i.Slug, i.Name), Arch: "amd64", Created: kit.ReadTime(i.Created)}
}
