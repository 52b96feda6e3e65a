package container

import "strings"

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
