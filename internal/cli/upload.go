package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"drover"
)

// upload sends the controller the contents of a batch's inputs that it does not have, and records in each job which
// files go into its working folder.
func (a *app) upload(ctx context.Context, svc drover.Queue, batch *drover.Batch) error {
	paths := map[string]string{} // by hash
	sizes := map[string]int64{}
	err := findInputs(batch, func(path string) (string, int64, error) {
		hash, size, err := hashFile(ctx, path)
		paths[hash], sizes[hash] = path, size
		return hash, size, err
	})
	if err != nil || len(paths) == 0 {
		return err
	}
	missing, err := svc.MissingInputs(ctx, slices.Sorted(maps.Keys(paths)))
	if err != nil {
		return err
	}
	total := int64(0)
	for _, hash := range missing {
		total += sizes[hash]
	}
	bar := a.uploadBar(total)
	defer bar.close()
	speaks := *a
	if bar.bars != nil {
		speaks.err = bar.bars // above the bar
	}
	for _, hash := range missing {
		err := speaks.patiently(ctx, func() error { return putFile(ctx, svc, hash, paths[hash], bar) })
		if err != nil {
			return err
		}
	}
	return nil
}

// hashFile returns the hash and the size of a file.
func hashFile(ctx context.Context, path string) (hash string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err = io.Copy(sum, whileWanted{ctx, f})
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

func putFile(ctx context.Context, svc drover.Queue, hash, path string, bar *uploadBar) error {
	if path == "" {
		return drover.Errorf(drover.KindInternal, "the controller asked for a file that was not offered: %s", hash)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = svc.PutInput(ctx, hash, bar.reading(whileWanted{ctx, f}))
	if err == nil {
		return nil
	}
	if e := drover.AsError(err, ""); e.Kind == drover.KindInvalid && e.Hint == "" {
		err = e.WithHint("if it has changed in the meantime, submit again")
	}
	return fmt.Errorf("uploading %s: %w", path, err)
}

// whileWanted reads until its context ends.
type whileWanted struct {
	ctx context.Context
	r   io.Reader
}

func (w whileWanted) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// uploadBar shows an upload on a terminal. Without one it shows nothing.
type uploadBar struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

func (a *app) uploadBar(total int64) *uploadBar {
	if !a.terminal || total == 0 {
		return &uploadBar{}
	}
	bars := mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(40))
	return &uploadBar{bars, bars.New(total, barStyle(), mpb.PrependDecorators(decor.Name("inputs "), decor.CountersKibiByte("% .1f / % .1f ")))}
}

// barStyle is the style of every bar.
func barStyle() mpb.BarStyleComposer {
	return mpb.BarStyle().Lbound("[").Filler("█").Tip("█").Padding("·").Rbound("]")
}

func (b *uploadBar) reading(r io.Reader) io.Reader {
	if b.bar == nil {
		return r
	}
	return b.bar.ProxyReader(r)
}

// close removes the bar.
func (b *uploadBar) close() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.bars.Wait()
	}
}
