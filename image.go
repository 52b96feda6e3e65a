package drover

import (
	"regexp"
)

// maxImage bounds the name of an image: registries allow 255 bytes of name, 128 of tag, and 71 of digest.
const maxImage = 512

// imageName is [HOST[:PORT]/]PATH[:TAG][@DIGEST], as registries read it. It begins with a letter or digit, so it cannot
// be mistaken for an option.
var imageName = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?` +
	`[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*` +
	`(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

// CheckImage returns an error if a text is not the name of a container image.
func CheckImage(name string) error {
	if len(name) > maxImage || !imageName.MatchString(name) {
		return Errorf(KindInvalid, "%.100q is not a valid image name", name).
			WithHint("write it as [HOST/]NAME[:TAG][@sha256:…], such as docker.io/library/busybox:1.36")
	}
	return nil
}
