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

// Images fetches images, each once however many callers want it at the same time. An image that the instance has is
// never fetched again, whatever its tag: all attempts on an instance run the same image, and each instance queries the
// registry once. Images is safe for concurrent use.
type Images struct {
	runtime Runtime
	log     *log.Logger

	mu    sync.Mutex
	under map[string]*fetch // guarded by mu
}

// fetch is an image that is being fetched.
type fetch struct {
	done  chan struct{}
	image Image // with err, set before done is closed
	err   error

	wanted int // guarded by Images.mu
	cancel context.CancelCauseFunc
}

// NewImages makes an Images that logs what it fetches.
func NewImages(r Runtime, l *log.Logger) *Images {
	return &Images{runtime: r, log: l, under: make(map[string]*fetch)}
}

// Get returns an image, fetched if the instance does not have it. Its error is an *ImageError, or the context's cause.
// A fetch continues as long as anyone waits for it.
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

// join adds the caller to those that wait for the image. It begins a fetch if there is none.
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

// leave cancels the fetch if nobody else waits for it. A later caller begins a new one.
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

// dropLocked forgets a fetch, unless another has replaced it.
func (i *Images) dropLocked(ref string, f *fetch) {
	if i.under[ref] == f {
		delete(i.under, ref)
	}
}

// get finds the image on the instance, or fetches it.
func (i *Images) get(ctx context.Context, ref string) (Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pullPatience, fmt.Errorf("the fetch took longer than %v", pullPatience))
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

// asImageError wraps err in an ImageError, unless it is one.
func asImageError(ref string, err error) error {
	var known *ImageError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &ImageError{Image: ref, Why: Unreachable, Text: err.Error()}
}
