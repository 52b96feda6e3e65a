package container

import (
	"errors"
	"strings"
	"testing"
)

// The texts are from docker 20.10 and 28, podman 4.3 and well-known registries.
func TestImageErrors(t *testing.T) {
	for said, want := range map[string]Why{
		"manifest for reg.example/a/denied:1 not found: manifest unknown: manifest unknown":                                            NotFound,
		"initializing source docker://reg.example/a/denied:1: reading manifest 1 in reg.example/a/denied: manifest unknown":            NotFound,
		"initializing source docker://reg.example/a/denied:1: reading manifest 1 in reg.example/a/b: name unknown: repository unknown": NotFound,
		"pull access denied for a, repository does not exist or may require 'docker login': denied: requested access is denied":        NotAllowed,
		"Head \"https://reg.example/v2/a/manifests/1\": no basic auth credentials":                                                     NotAllowed,
		"unauthorized: authentication required": NotAllowed,
		"Head \"https://reg.example/v2/a/manifests/1\": unexpected status from HEAD request: 403 Forbidden":    NotAllowed,
		"no matching manifest for linux/arm64/v8 in the manifest list entries":                                 WrongArch,
		"toomanyrequests: You have reached your pull rate limit. See https://docs.example/denied":              Unreachable,
		"Get \"http://reg.example/v2/\": dial tcp 127.0.0.1:5999: connect: connection refused":                 Unreachable,
		"Get \"https://reg.example/v2/\": dial tcp: lookup reg.example: no such host":                          Unreachable,
		"received unexpected HTTP status: 503 Service Unavailable":                                             Unreachable,
		"Get \"https://reg.example/v2/\": net/http: TLS handshake timeout":                                     Unreachable,
		"Get \"https://reg.example/v2/\": x509: certificate signed by unknown authority":                       Unreachable,
		"write /var/lib/docker/tmp/GetImageBlob1: no space left on device":                                     Unreachable,
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":    Unreachable,
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock": Unreachable,
		"error getting credentials - err: exec: \"docker-credential-x\": executable file not found in $PATH":   Unreachable,
		"something that nobody has seen before":                                                                Unreachable,
	} {
		t.Run(said, func(t *testing.T) {
			e := imageError("reg.example/a/denied:1", said)
			if e.Why != want || !strings.Contains(e.Error(), said) || e.Final() == (want == Unreachable) {
				t.Errorf("got %d: %v", e.Why, e)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	for said, want := range map[string]bool{
		"no such image: a: No such image: a:latest":     true,
		"inspecting object: a: image not known":         true,
		"No such object: a":                             true,
		"Cannot connect to the Docker daemon at unix:/": false,
	} {
		t.Run("distinguishes a missing image from a failing runtime: "+said, func(t *testing.T) {
			if missing(errors.New(said)) != want {
				t.Errorf("want %v", want)
			}
		})
	}
}
