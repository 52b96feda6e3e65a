package daemon

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"drover"
	"drover/internal/remote"
)

// findRunners returns the function that finds the runner for an architecture: one that this program was built with, or
// else this program itself, which can do the same but is larger. Each is read once, when the first instance of its
// architecture needs it.
func findRunners(compiled fs.FS) func(drover.Arch) (remote.Runner, error) {
	var mu sync.Mutex
	found := map[drover.Arch]remote.Runner{}
	return func(arch drover.Arch) (remote.Runner, error) {
		mu.Lock()
		defer mu.Unlock()
		if arch == "" {
			arch = drover.Arch(runtime.GOARCH)
		}
		if r, ok := found[arch]; ok {
			return r, nil
		}
		r, err := remote.NewRunner(func() (io.ReadCloser, error) { return openRunner(compiled, arch) })
		if err == nil {
			found[arch] = r
		}
		return r, err
	}
}

// openRunner reads the runner for an architecture.
func openRunner(compiled fs.FS, arch drover.Arch) (io.ReadCloser, error) {
	packed, err := compiled.Open("runners/linux-" + string(arch) + ".gz")
	switch {
	case err == nil:
		content, err := gzip.NewReader(packed)
		return unpacked{content, packed}, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case runtime.GOOS == "linux" && string(arch) == runtime.GOARCH:
		return os.Open("/proc/self/exe")
	}
	return nil, drover.Errorf(drover.KindUnsupported, "this drover was built without the runner for %s", arch).
		WithHint("install a released package, or build drover with make build: both include the runners")
}

// unpacked is the content of a file that is closed with it.
type unpacked struct {
	io.Reader
	io.Closer
}
