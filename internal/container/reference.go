package container

import "strings"

// full returns the reference in a form that means the same to every runtime: with its registry, docker.io by default,
// and without its tag if it has a digest.
func full(ref string) string {
	if _, digest, exact := strings.Cut(ref, "@"); exact {
		ref = repository(ref) + "@" + digest
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

// repository returns the reference without its tag and digest.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndex(ref, ":"); colon > strings.LastIndex(ref, "/") {
		ref = ref[:colon]
	}
	return ref
}
