package container

import (
	"fmt"
	"strings"
)

// ImageError is why a command cannot run in an image.
type ImageError struct {
	Image string
	Why   Why
	Text  string // the runtime's own words
}

// Why is the cause of an ImageError, as far as callers must distinguish it.
type Why int

// The causes.
const (
	Unreachable Why = iota // the registry, the network or the instance failed: it may work elsewhere, or later
	NotFound               // there is no such image
	NotAllowed             // access to it is denied
	WrongArch              // it is not built for this instance's processor
	NoCommand              // neither it nor the job has a command
	NoRuntime              // no runtime is installed on the instance, and other instances boot the same image
)

func (e *ImageError) Error() string {
	switch e.Why {
	case NotFound:
		return fmt.Sprintf("image %s does not exist: %s", e.Image, e.Text)
	case NotAllowed:
		return fmt.Sprintf("image %s is not accessible, at least not without a login: %s", e.Image, e.Text)
	case WrongArch:
		return fmt.Sprintf("image %s is not built for this instance's architecture (choose another architecture with resources: {arch: …}): %s", e.Image, e.Text)
	case NoCommand:
		return fmt.Sprintf("image %s cannot run: %s", e.Image, e.Text)
	case NoRuntime:
		return fmt.Sprintf("image %s cannot run: the instance has no container runtime; install docker or podman in its boot image: %s", e.Image, e.Text)
	}
	return fmt.Sprintf("image %s could not be fetched: %s", e.Image, e.Text)
}

// Final reports whether a retry, here or elsewhere, is useless.
func (e *ImageError) Final() bool { return e.Why != Unreachable }

// words are texts in the errors of runtimes and registries; the first that matches decides. Errors of the distribution
// protocol have fixed codes ("manifest unknown"), those of HTTP fixed names. An error that matches none counts as
// temporary.
var words = []struct {
	text string
	why  Why
}{
	{"docker daemon", Unreachable},
	{"permission denied", Unreachable}, // of a file or socket: registries say "denied"
	{"executable file not found", Unreachable},
	{"toomanyrequests", Unreachable},
	{"too many requests", Unreachable},
	{"no matching manifest", WrongArch},
	{"no image found in image index for architecture", WrongArch},
	{"no image found in manifest list for architecture", WrongArch},
	{"unauthorized", NotAllowed},
	{"authentication required", NotAllowed},
	{"no basic auth credentials", NotAllowed},
	{"denied", NotAllowed},
	{"forbidden", NotAllowed},
	{"manifest unknown", NotFound},
	{"name unknown", NotFound},
	{"repository name not known", NotFound},
	{"not found", NotFound},
	{"invalid reference format", NotFound},
}

// imageError classifies the runtime's error text. It removes the image's names from the text first, since they could
// contain any of the words.
func imageError(image, said string) *ImageError {
	own := strings.NewReplacer(full(image), "", image, "", repository(full(image)), "", repository(image), "")
	plain := strings.ToLower(own.Replace(said))
	e := &ImageError{Image: image, Text: said}
	for _, w := range words {
		if strings.Contains(plain, w.text) {
			e.Why = w.why
			return e
		}
	}
	return e
}
