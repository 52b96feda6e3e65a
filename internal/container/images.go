package container

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
)

// pullPatience bounds one fetch of an image.
const pullPatience = 30 * time.Minute

// Images fetches images, each once however many want it at the same time. An image that the instance has is never
// fetched again, whatever its tag: all attempts on an instance run the same, and a registry is asked once by each
// instance. Images is safe for concurrent use.
type Images struct {
	runtime Runtime
	log     *log.Logger

	mu    sync.Mutex
	under map[string]*fetch // guarded by mu
}

// fetch is an image on its way.
type fetch struct {
	done  chan struct{}
	image Image // with err, set before done is closed
	err   error

	wanted int // guarded by Images.mu
	cancel context.CancelCauseFunc
}

// NewImages makes an Images that tells the log what it fetches.
func NewImages(r Runtime, l *log.Logger) *Images {
	return &Images{runtime: r, log: l, under: make(map[string]*fetch)}
}

// Get returns an image that the instance then has. Its error is a *ImageError, or the context's cause. A fetch goes on
// as long as anyone waits for it.
func (i *Images) Get(ctx context.Context, ref string) (Image, error) {
	f := i.join(ref)
	select {
	case <-f.done:
		return f.image, f.err
	case <-ctx.Done():
		i.leave(ref, f, context.Cause(ctx))
		return Image{}, context.Cause(ctx)
	}
}

// join makes the caller one who waits for the image, beginning to fetch it if nobody else does.
func (i *Images) join(ref string) *fetch {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.under[ref]
	if f == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		f = &fetch{done: make(chan struct{}), cancel: cancel}
		i.under[ref] = f
		go i.carryOut(ctx, ref, f)
	}
	f.wanted++
	return f
}

// leave ends the fetch if nobody else waits for it. Who comes later begins anew.
func (i *Images) leave(ref string, f *fetch, why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f.wanted--
	if f.wanted == 0 {
		f.cancel(why)
		i.dropLocked(ref, f)
	}
}

func (i *Images) carryOut(ctx context.Context, ref string, f *fetch) {
	defer f.cancel(nil)
	f.image, f.err = i.get(ctx, ref)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dropLocked(ref, f)
	close(f.done)
}

// dropLocked forgets a fetch, unless another has taken its place.
func (i *Images) dropLocked(ref string, f *fetch) {
	if i.under[ref] == f {
		delete(i.under, ref)
	}
}

// get finds the image on the instance, or fetches it.
func (i *Images) get(ctx context.Context, ref string) (Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pullPatience, fmt.Errorf("it was not fetched within %v", pullPatience))
	defer cancel()
	image, found, err := i.runtime.Image(ctx, ref)
	if err == nil && found {
		return image, nil
	}
	began := time.Now()
	i.log.Printf("fetching image %s with %s", ref, i.runtime.Name())
	if err = i.runtime.Pull(ctx, ref); err == nil {
		i.log.Printf("fetched image %s in %v", ref, time.Since(began).Round(time.Millisecond))
		if image, found, err = i.runtime.Image(ctx, ref); err == nil && !found {
			err = errors.New("it is still missing after being fetched")
		}
	}
	if err != nil {
		i.log.Printf("fetching image %s: %v", ref, err)
	}
	return image, asImageError(ref, err)
}

// asImageError makes a ImageError of what the runtime did not give as one.
func asImageError(ref string, err error) error {
	var known *ImageError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &ImageError{Image: ref, Why: Unreachable, Text: err.Error()}
}
