package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// defaultListen is where a controller listens by default.
const defaultListen = "127.0.0.1:8420"

// listenAddress is where the API listens.
type listenAddress string

func (l *listenAddress) decodeWord(d *decoder, n *node) {
	host, port, err := net.SplitHostPort(n.text)
	number, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil && !strings.Contains(n.text, ":"):
		d.add(n, quote(n.text)+" is not an address", "write HOST:PORT, such as "+defaultListen)
	case err != nil || portErr != nil || strings.ContainsAny(host, "/ @"):
		d.add(n, quote(n.text)+" is not an address", "write HOST:PORT, such as "+defaultListen+" or [::1]:8420")
	case host == "":
		d.add(n, quote(n.text)+" has no host", "write 127.0.0.1:"+port+" for this host only, or 0.0.0.0:"+port+" for every host that can reach it")
	default:
		*l = listenAddress(net.JoinHostPort(host, strconv.FormatUint(number, 10)))
	}
}

func (listenAddress) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^([^\s/@:]+|\[[^\s/@]+\]):[0-9]+$`}
}

// baseURL is where clients reach the API.
type baseURL string

func (u *baseURL) decodeWord(d *decoder, n *node) {
	parsed, err := url.Parse(n.text)
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		d.add(n, quote(n.text)+" is not a URL", "write https://HOST or http://HOST:PORT")
	case parsed.User != nil:
		d.add(n, "a URL must not contain a user name or password", "write "+parsed.Scheme+"://"+parsed.Host)
	case strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "":
		d.add(n, quote(n.text)+" must not have a path, query or fragment", "write "+parsed.Scheme+"://"+parsed.Host)
	default:
		*u = baseURL(parsed.Scheme + "://" + parsed.Host)
	}
}

func (baseURL) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^https?://[^/?#@:][^/?#@]*/?$`}
}
