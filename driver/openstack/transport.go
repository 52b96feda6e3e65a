package openstack

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"drover/driver/kit"
)

// maxAnswer is how large one answer may be: a thousand servers take about two MiB.
const maxAnswer = 64 << 20

// transport counts every call, and reads no more of an answer than there can be.
type transport struct {
	kit.Gate
	next http.RoundTripper
}

// RoundTrip makes one call.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.Send(r, t.next, callName(r))
	if err != nil {
		return nil, err
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	return answer, nil
}

// CloseIdleConnections is for the client's method of this name.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// versionPart is what begins a path, up to the version of the API.
var versionPart = regexp.MustCompile(`^.*/v[0-9.]+(/|$)`)

// callName is a call without what it is about, such as "PUT servers/metadata".
func callName(r *http.Request) string {
	var parts []string
	for part := range strings.SplitSeq(versionPart.ReplaceAllString(r.URL.Path, ""), "/") {
		if part != "" && !uuid.MatchString(part) {
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("%s %s", r.Method, strings.Join(parts, "/"))
}
