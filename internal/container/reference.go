package container

import (
	"fmt"
	"regexp"
	"strings"
)

// maxReference bounds an image's reference; registries allow 255 bytes of name, 128 of tag, and 71 of digest.
const maxReference = 512

// reference is [HOST[:PORT]/]PATH[:TAG][@DIGEST], as registries read it. It begins with a letter or digit, so it can be no option.
var reference = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?` +
	`[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*` +
	`(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

// Check says what is wrong with an image's reference, if anything is.
func Check(ref string) error {
	if len(ref) > maxReference || !reference.MatchString(ref) {
		return fmt.Errorf("%.100q is not the name of an image, such as docker.io/library/busybox:1.36", ref)
	}
	return nil
}

// full is the reference as it means the same to every runtime: with its registry written out, which without one is docker.io, as people
// know it, and without a tag where a digest decides.
func full(ref string) string {
	if name, digest, exact := strings.Cut(ref, "@"); exact {
		if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
			name = name[:colon]
		}
		ref = name + "@" + digest
	}
	host, _, qualified := strings.Cut(ref, "/")
	switch {
	case !qualified:
		return "docker.io/library/" + ref
	case strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host:
		return ref
	}
	return "docker.io/" + ref
}
