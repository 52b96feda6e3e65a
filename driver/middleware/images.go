package middleware

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// imageAge is how long the result of an image search is used.
const imageAge = 10 * time.Minute

// imaged is a Cloud that adds images to create requests.
type imaged struct {
	driver.Cloud
	refs  map[drover.Arch]string
	finds kit.Names // the searches under way, so that concurrent creates share one

	mu    sync.Mutex
	found map[imageKey]foundImage // guarded by mu
}

type imageKey struct {
	ref  string
	arch drover.Arch
}

type foundImage struct {
	id string
	at time.Time
}

// WithImages wraps a cloud so that every candidate of a create request has its image: that of its architecture in refs,
// else that under "". The request's own images take precedence over refs. An ImageFinder resolves a reference; of
// several matches the newest counts. The result is used for ten minutes, or longer if the cloud cannot be queried
// again. Any other cloud gets the reference unchanged. A candidate without an image is left out.
func WithImages(c driver.Cloud, refs map[drover.Arch]string) driver.Cloud {
	return &imaged{Cloud: c, refs: refs, found: map[imageKey]foundImage{}}
}

// Unwrap returns the cloud within.
func (c *imaged) Unwrap() driver.Cloud { return c.Cloud }

// Create leaves out the candidates that have no image, and fails if none is left.
func (c *imaged) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	refs := c.refs
	if len(r.Images) > 0 {
		refs = r.Images
	}
	if len(refs) == 0 {
		return c.Cloud.Create(ctx, r)
	}
	var left []driver.Candidate
	var none error
	for _, candidate := range r.Candidates {
		id, err := c.image(ctx, refs, candidate.Arch)
		if err != nil {
			none = cmp.Or(none, fmt.Errorf("create instance %s: %w", r.Name, err))
			continue
		}
		candidate.Image = id
		left = append(left, candidate)
	}
	if len(left) == 0 && none != nil {
		return driver.Instance{}, driver.Candidate{}, none
	}
	r.Candidates = left
	return c.Cloud.Create(ctx, r)
}

// image returns the id of the image for an architecture.
func (c *imaged) image(ctx context.Context, refs map[drover.Arch]string, arch drover.Arch) (string, error) {
	ref := cmp.Or(refs[arch], refs[""])
	if ref == "" {
		return "", drover.Errorf(drover.KindInvalid, "no image is configured for %s", arch)
	}
	finder, ok := driver.As[driver.ImageFinder](c.Cloud)
	if !ok {
		return ref, nil
	}
	key := imageKey{ref, arch}
	if known := c.known(key); time.Since(known.at) < imageAge {
		return known.id, nil
	}
	release, err := c.finds.Hold(ctx, ref+" "+string(arch))
	if err != nil {
		return "", err
	}
	defer release()
	known := c.known(key)
	if time.Since(known.at) < imageAge {
		return known.id, nil
	}
	return c.find(ctx, finder, key, known)
}

// find queries the cloud. If that fails, the last result stays in use.
func (c *imaged) find(ctx context.Context, finder driver.ImageFinder, key imageKey, last foundImage) (string, error) {
	all, err := finder.FindImages(ctx, key.ref, key.arch)
	if err != nil && last.id != "" {
		return last.id, nil
	}
	if err != nil {
		return "", fmt.Errorf("look for image %s: %w", key.ref, err)
	}
	newest, ok := Newest(all, key.arch)
	if !ok {
		return "", drover.Errorf(drover.KindNotFound, "there is no image %s for %s", key.ref, cmp.Or(key.arch, "any architecture"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[key] = foundImage{newest.ID, time.Now()}
	return newest.ID, nil
}

func (c *imaged) known(key imageKey) foundImage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found[key]
}

// Newest returns the newest image for an architecture; of equally new ones, the last by name and id.
func Newest(all []driver.Image, arch drover.Arch) (newest driver.Image, ok bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(i driver.Image) bool { return arch != "" && i.Arch != "" && i.Arch != arch })
	if len(all) == 0 {
		return driver.Image{}, false
	}
	return slices.MaxFunc(all, func(a, b driver.Image) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	}), true
}
