package httpapi

import (
	"net"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"drover"
)

// alone reports whether a controller that listens on this address and has this URL, if any, can be reached only from
// its own host. Requests through a proxy come from loopback too.
func alone(listen, base string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !loopback(host) {
		return false
	}
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "" || loopback(u.Hostname()))
}

// bindMetrics puts the metrics on the mux: for callers who may see the fleet and, if so configured, for all from this
// host.
func bindMetrics(h *Handler, op huma.Operation) {
	answers(&op, "text/plain", &huma.Schema{Type: huma.TypeString, Description: "in the Prometheus text format"})
	if h.cfg.Reach.OpenMetrics {
		op.Description = "Needs no token on the controller's own host; elsewhere, it needs a token with the role " + string(drover.RoleView) + "."
		op.Security = append(op.Security, map[string][]string{})
	}
	h.api.OpenAPI().AddOperation(&op)
	rt := op.Metadata["route"].(route)
	open := http.HandlerFunc(h.serveMetrics)
	guarded := h.guard(rt, open)
	h.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		if h.reach.Load().OpenMetrics && fromHere(r) {
			open(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// fromHere reports whether a request came over loopback. A job's request comes over SSH, so it did not.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && loopback(host)
}

func (h *Handler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Metrics == nil {
		h.refuse(w, noRoute(r, nil))
		return
	}
	h.cfg.Metrics.ServeHTTP(w, r)
}
