package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/backoff"
)

// recheck is how often the token of a stream is checked again.
const recheck = 10 * time.Second

// Reach is how a handler is reached.
type Reach struct {
	Hosts       []string // the host names and addresses that requests may name; nil: any
	OpenMetrics bool     // requests from this host need no token for the metrics
}

// ReachOf returns the Reach of a controller that listens on this address and has this URL, if any.
func ReachOf(listen, base string) Reach { return Reach{hosts(listen, base), alone(listen, base)} }

// hosts returns the host names that requests may use for a controller that listens on this address and has this URL, if
// any. On loopback they are limited, so that a page in a local browser cannot reach the controller under the page's own
// host name (DNS rebinding). Elsewhere they are nil, which allows any.
func hosts(listen, base string) []string {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !loopback(host) {
		return nil
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", host}
	if u, err := url.Parse(base); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

// loopback reports whether a host is a loopback address or localhost.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// checkHost refuses a request for a host that is not this controller.
func (h *Handler) checkHost(host string) error {
	allowed := h.reach.Load().Hosts
	if allowed == nil {
		return nil
	}
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = strings.Trim(name, "[]")
	if slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, name) }) {
		return nil
	}
	return drover.Errorf(drover.KindForbidden, "this controller does not answer requests for the host %q", cut(name)).
		WithHint("if this is the controller's host name, use it in url in the configuration")
}

// guard lets only callers who may use a route through to it.
func (h *Handler) guard(rt route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rt.role == "" {
			next.ServeHTTP(w, r)
			return
		}
		id, err := h.admit(rt, r)
		if err != nil {
			h.refuse(w, err)
			return
		}
		if out, ok := w.(*response); ok {
			out.caller = callerKey(id)
		}
		release, err := h.bodies.take(id.User, rt.body(r))
		if err != nil {
			h.refuse(w, err)
			return
		}
		defer release()
		if !rt.long {
			done, err := h.underWay.open(id.User)
			if err != nil {
				h.refuse(w, err)
				return
			}
			defer done()
			if body, ok := r.Body.(*upload); ok {
				body.until = time.Now().Add(bodyTime)
			}
		}
		ctx := drover.WithIdentity(r.Context(), id)
		if rt.long {
			stream, release, err := h.openStream(ctx, id, r)
			if err != nil {
				h.refuse(w, err)
				return
			}
			defer release()
			w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer a slow stream
			ctx = stream
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// openStream counts a stream until release is called. Its context ends with the Handler, or when its token is no longer
// valid.
func (h *Handler) openStream(ctx context.Context, id drover.Identity, r *http.Request) (stream context.Context, release func(), err error) {
	token, err := bearer(r)
	if err != nil {
		return nil, nil, err
	}
	closed, err := h.streams.open(id.User)
	if err != nil {
		return nil, nil, err
	}
	stream, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.open, cancel)
	go h.watchToken(stream, cancel, token)
	return stream, func() { stop(); cancel(); closed() }, nil
}

// watchToken ends a stream whose token was revoked or has expired meanwhile.
func (h *Handler) watchToken(ctx context.Context, cancel context.CancelFunc, token drover.Secret) {
	for backoff.For(ctx, recheck) == nil {
		if _, err := h.cfg.Authenticate(ctx, token); drover.KindOf(err) == drover.KindAuthentication {
			cancel()
			return
		}
	}
}

// admit returns the caller's identity if the caller may use the route now.
func (h *Handler) admit(rt route, r *http.Request) (drover.Identity, error) {
	if r.Method == http.MethodHead {
		return drover.Identity{}, noRoute(r, []string{http.MethodGet})
	}
	id, err := h.authenticate(r)
	if err != nil {
		return id, err
	}
	limit := h.cfg.Limits.Requests
	if id.Attempt != nil {
		limit = h.cfg.Limits.Attempts
	}
	if wait := h.requests.take(callerKey(id), limit, time.Now()); wait > 0 {
		return id, tooMany(wait, "you sent more than %v requests per second", limit.PerSecond)
	}
	if err := rt.permits(id, r); err != nil {
		return id, err
	}
	if rt.long && h.open.Err() != nil {
		return id, ending()
	}
	return id, nil
}

// authenticate returns the identity of the bearer of the request's token. Failures are counted by address, and too many
// are told to wait; they never hinder a valid token from the same address.
func (h *Handler) authenticate(r *http.Request) (drover.Identity, error) {
	token, err := bearer(r)
	var id drover.Identity
	if err == nil {
		id, err = h.cfg.Authenticate(r.Context(), token)
	}
	if err == nil {
		h.unknown.known(r.Context())
		return id, nil
	}
	if drover.KindOf(err) == drover.KindAuthentication {
		if wait := h.tries.take(addressKey(r.RemoteAddr), h.cfg.Limits.Tries, time.Now()); wait > 0 {
			return id, tooMany(wait, "too many requests without a valid token")
		}
	}
	return drover.Identity{}, err
}

// bearer returns the token of a request (RFC 6750).
func bearer(r *http.Request) (drover.Secret, error) {
	const hint = "send Authorization: Bearer TOKEN"
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return drover.Secret{}, drover.Errorf(drover.KindAuthentication, "this needs a token, but the request has none").WithHint(hint)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 4096 || strings.ContainsFunc(token, notOfToken) {
		return drover.Secret{}, drover.Errorf(drover.KindAuthentication, "the Authorization header is malformed").WithHint(hint)
	}
	return drover.NewSecret(token), nil
}

func notOfToken(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`",;\`, r) }

// permits refuses an identity that may not use a route, and states the requirement.
func (rt route) permits(id drover.Identity, r *http.Request) error {
	if id.Attempt != nil {
		return rt.permitsAttempt(*id.Attempt, r.PathValue("id"))
	}
	if id.Role.Allows(rt.role) {
		return nil
	}
	return needs(rt.role, id)
}

// permitsAttempt lets an attempt see its own job, the array that contains it, and the fleet's status.
func (rt route) permitsAttempt(self drover.AttemptID, path string) error {
	if !rt.attempt {
		return drover.Errorf(drover.KindForbidden, "an attempt's token does not allow this: it only lets attempt %v see its own job and the fleet's status", self)
	}
	if path == "" {
		return nil
	}
	id, err := drover.ParseJobID(path)
	if err != nil || id.Number != self.Job.Number || id.Index >= 0 && id.Index != self.Job.Index {
		return drover.Errorf(drover.KindForbidden, "an attempt's token does not allow this: it only gives access to job %v", self.Job)
	}
	return nil
}

// needs returns the error for an identity whose role is too low.
func needs(role drover.Role, id drover.Identity) error {
	return drover.Errorf(drover.KindForbidden, "this needs the role %s, but this token has %s", role, id.Role).
		WithHint("an administrator can create a suitable token with drover token create --role %s", role)
}

// ending returns the error for requests that would delay the controller's shutdown.
func ending() error {
	return drover.Errorf(drover.KindTransient, "the controller is shutting down").WithHint("try again when it is back")
}

// cut shortens untrusted text for a message.
func cut(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
