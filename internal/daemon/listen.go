package daemon

import (
	"errors"
	"net"
	"strings"
	"syscall"

	"drover"
	"drover/internal/config"
	"drover/internal/httpapi"
	"drover/internal/logkey"
)

// The address of the API can change while the controller runs: open connections stay open.

// The keys that set an address to listen on.
const (
	apiAddress        = "listen: HOST:PORT"
	autoscalerAddress = "kubernetes: {listen: HOST:PORT}"
)

// listen listens on an address that a key sets.
func (d *daemon) listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	return l, d.notListening(key, address, err)
}

// notListening returns why an address that a key sets cannot be listened on. If another process has the address, or the
// network is not up yet, a later start may succeed.
func (d *daemon) notListening(key, address string, err error) error {
	if err == nil {
		return nil
	}
	kind := drover.KindInvalid
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		kind = drover.KindTransient
	}
	return drover.Errorf(kind, "listening on %s: %v", address, err).WithHint("set %s in %s", key, d.File)
}

// reach returns how the API is reached with a configuration.
func (d *daemon) reach(c *config.Config) httpapi.Reach {
	r := httpapi.ReachOf(c.Listen, c.URL)
	if r.Hosts == nil {
		d.Log.Warn("accepting connections from other hosts without TLS: put a TLS proxy in front, and block all other access", logkey.Listen, c.Listen)
	}
	return r
}

// listenAnew listens at the address of another configuration; nil if that is the present one. An address that covers
// the present one, such as 0.0.0.0 on the same port, is free only once the present listener is closed.
func (d *daemon) listenAnew(c *config.Config) (net.Listener, error) {
	if c.Listen == d.config.Listen {
		return nil, nil
	}
	l, err := net.Listen("tcp", c.Listen)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, d.notListening(apiAddress, c.Listen, err)
	}
	d.listener.Close()
	if l, err = d.listen(apiAddress, c.Listen); err == nil {
		return l, nil
	}
	return nil, errors.Join(err, d.listenBack())
}

// listenBack listens at the present address again, after a configuration with another one was refused.
func (d *daemon) listenBack() error {
	d.listener.Close()
	l, err := d.listen(apiAddress, d.listener.Addr().String())
	if err == nil {
		d.listener = l
		go d.serveHTTP(l)
	}
	return err
}

// move serves the API at another listener, unless that is nil, and under another URL.
func (d *daemon) move(c *config.Config, l net.Listener) {
	if c.Listen == d.config.Listen && c.URL == d.config.URL {
		return
	}
	d.api.Move(d.reach(c))
	d.pages.SetSecure(strings.HasPrefix(c.URL, "https://"))
	if l == nil {
		return
	}
	d.listener.Close()
	d.listener = l
	go d.serveHTTP(l)
	if err := d.folder.Announce(l.Addr().String()); err != nil {
		d.Log.Error("the address cannot be recorded, so commands on this host may not find the controller", logkey.Error, err)
	}
	d.Log.Info("serving", logkey.URL, "http://"+l.Addr().String())
}
