package config

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// Health is how the controller checks a pool's instances. Without TCP and HTTP it does not check them.
type Health struct {
	TCP      int           `yaml:"tcp" min:"1" max:"65535" doc:"the check passes when this port accepts a connection"`
	HTTP     HTTPCheck     `yaml:"http" doc:"port and path, such as :80/healthz; the check passes when a GET returns a status from 200 to 399"`
	Interval time.Duration `yaml:"interval" doc:"how often to check"`
	Timeout  time.Duration `yaml:"timeout" doc:"how long a check may take, at most interval; default: 5s"`
	Failures int           `yaml:"failures" min:"1" max:"100" doc:"replace an instance after this many failures in a row"`
	Within   time.Duration `yaml:"boot_timeout" doc:"a new instance must pass within this time after its boot; default: instances.boot_timeout"`
}

// Default sets the default interval and number of failures.
func (h *Health) Default() { *h = Health{Interval: 10 * time.Second, Failures: 3} }

// HTTPCheck is :PORT/PATH.
type HTTPCheck string

func (c *HTTPCheck) decodeWord(d *decoder, n *node) {
	if port, path := HTTPCheck(n.text).parts(); port == 0 || strings.ContainsAny(path, " #\x00\r\n") {
		d.add(n, quote(n.text)+" is not in the form :PORT/PATH", "write :80/ or :8080/healthz")
		return
	}
	*c = HTTPCheck(n.text)
}

func (HTTPCheck) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^:[0-9]+/"}
}

// parts returns the port, 0 if there is none, and the path with its query.
func (c HTTPCheck) parts() (port int, path string) {
	number, path, ok := strings.Cut(string(c), "/")
	host, text, err := net.SplitHostPort(number)
	if n, bad := strconv.ParseUint(text, 10, 16); err == nil && bad == nil && host == "" && ok {
		port = int(n)
	}
	return port, "/" + path
}

// Target returns the port to connect to, 0 for none, and the path of an HTTP check, empty for just a connection.
func (h *Health) Target() (port int, path string) {
	switch {
	case h == nil:
		return 0, ""
	case h.HTTP != "":
		return h.HTTP.parts()
	}
	return h.TCP, ""
}

// Check ensures that there is one check, and that it ends before the next one starts.
func (h *Health) Check() error {
	if h.Timeout == 0 {
		h.Timeout = min(5*time.Second, h.Interval)
	}
	switch {
	case (h.TCP == 0) == (h.HTTP == ""):
		return drover.Errorf(drover.KindInvalid, "a health check needs either tcp or http, but not both").WithHint("write {tcp: 80}, or {http: :80/}")
	case h.Interval < time.Second:
		return drover.Errorf(drover.KindInvalid, "interval (%v) must be at least 1s", h.Interval)
	case h.Timeout > h.Interval:
		return drover.Errorf(drover.KindInvalid, "timeout (%v) must not exceed interval (%v)", h.Timeout, h.Interval)
	}
	return nil
}
