package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"drover"
	"drover/internal/logkey"
)

// Config configures a Handler.
type Config struct {
	Service drover.Service

	// Authenticate returns the identity of a token's bearer. KindAuthentication: the token is not valid, or no longer;
	// the message states which.
	Authenticate func(ctx context.Context, token drover.Secret) (drover.Identity, error)

	Log     *slog.Logger
	Version string                      // of the controller, for the description of the API
	Ready   func(context.Context) error // why it is not ready to serve; nil: it always is
	Notice  func() string               // text added to the readiness response; nil: none
	Reach   Reach                       // at the beginning; see Move
	Limits  Limits

	Compare func(ctx context.Context, name string, text []byte) (drover.ConfigDiff, error) // what the configuration's file would change with another text; nil: there is no file

	Metrics http.Handler // answers at /metrics; nil: nothing does

	Pages http.Handler                                       // handles GET and POST requests outside the API, with its own access rules; nil: none
	Login func(token drover.Secret) (link string, err error) // makes a link, below the controller's URL, with which a browser can log in once as this token's bearer; nil: there are no Pages

	Shared bool // every token reads what belongs to any user
}

// Handler serves a drover.Service over HTTP.
type Handler struct {
	cfg      Config
	reach    atomic.Pointer[Reach]
	mux      *http.ServeMux
	api      huma.API
	routes   []route
	nothing  http.Handler // handles requests without a route
	requests *limiters    // by identity
	tries    *limiters    // by address, of requests without a valid token
	streams  *streams
	underWay *streams // requests other than streams
	unknown  *strangers
	idle     *strangers // connections without a request under way
	bodies   *room
	text     []byte          // the description of the API
	open     context.Context // until Close
	close    context.CancelFunc
}

// New makes a Handler.
func New(cfg Config) *Handler {
	cfg.Limits = cfg.Limits.orDefault()
	h := &Handler{
		cfg:      cfg,
		mux:      http.NewServeMux(),
		routes:   routes(),
		requests: newLimiters(),
		tries:    newLimiters(),
		streams:  newStreams("streams", 5*time.Second, cfg.Limits.Streams, cfg.Limits.AllStreams),
		underWay: newStreams("requests", time.Second, cfg.Limits.AtOnce, cfg.Limits.AllAtOnce),
		unknown:  newStrangers(cfg.Limits.Strangers),
		idle:     newStrangers(cfg.Limits.AllStreams),
		bodies:   newRoom(maxBodies),
	}
	h.reach.Store(&cfg.Reach)
	h.open, h.close = context.WithCancel(context.Background())
	h.api = h.newAPI()
	for _, rt := range h.routes {
		rt.bind(h, h.operation(rt))
	}
	h.text = h.describe()
	h.nothing = h.guard(route{role: drover.RoleView, attempt: true}, http.HandlerFunc(h.serveNothing))
	h.mux.HandleFunc("/", h.serveOther)
	return h
}

// Move changes how the handler is reached from now on.
func (h *Handler) Move(r Reach) { h.reach.Store(&r) }

// Close ends open streams and refuses new ones, so that http.Server.Shutdown need not wait for them.
func (h *Handler) Close() { h.close() }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	out := newResponse(w)
	body := newUpload(out.ctl, r.Body)
	r.Body = body
	out.Header().Set("Cache-Control", "no-store")
	out.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() {
		body.end()
		h.cfg.Log.Debug("request", logkey.Method, r.Method, logkey.Path, r.URL.Path, logkey.Status, out.status, logkey.Bytes, out.bytes,
			logkey.TookSeconds, time.Since(began).Seconds(), logkey.Caller, out.caller, logkey.Remote, r.RemoteAddr)
	}()
	defer h.recover(out, r)
	if err := h.checkHost(r.Host); err != nil {
		h.refuse(out, err)
		return
	}
	// The mux would redirect a path that is not in its plain form, before any guard.
	if !plain(r) {
		h.nothing.ServeHTTP(out, r)
		return
	}
	h.mux.ServeHTTP(out, r)
}

// recover turns a panic into an error response, unless a response has begun, and a line in the log.
func (h *Handler) recover(out *response, r *http.Request) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler: // this aborts a stream
		panic(p)
	case out.failed: // the client is gone, and huma panics when it cannot write
		panic(http.ErrAbortHandler)
	}
	h.cfg.Log.Error("panic while answering a request", logkey.Method, r.Method, logkey.Path, r.URL.Path, logkey.Panic, p, logkey.Stack, string(debug.Stack()))
	if out.status != 0 {
		panic(http.ErrAbortHandler)
	}
	h.refuse(out, failed())
}

// failed is the error for a panic.
func failed() error {
	return drover.Errorf(drover.KindInternal, "the controller failed to handle this request; see its log for the reason")
}

// plain reports whether a request's path has no dot segments and no empty parts.
func plain(r *http.Request) bool {
	p := r.URL.EscapedPath()
	return path.Clean(p) == p
}

// serveOther answers requests outside the API: pages for browsers, which send no token in a header.
func (h *Handler) serveOther(w http.ResponseWriter, r *http.Request) {
	api := strings.HasPrefix(r.URL.Path, "/v1/") || r.Header.Get("Authorization") != ""
	if h.cfg.Pages == nil || api || r.Method != http.MethodGet && r.Method != http.MethodPost {
		h.nothing.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), knownKey{}, func() { h.unknown.known(r.Context()) }))
	defer cancel()
	defer context.AfterFunc(h.open, cancel)()
	h.cfg.Pages.ServeHTTP(w, r.WithContext(ctx))
}

type knownKey struct{}

// Known marks the sender of a request to Config.Pages as authorized, so that its connection is kept.
func Known(ctx context.Context) {
	if tell, ok := ctx.Value(knownKey{}).(func()); ok {
		tell()
	}
}

// serveNothing answers requests for which there is no route.
func (h *Handler) serveNothing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" && plain(r) {
			allowed = append(allowed, method)
		}
	}
	h.refuse(w, noRoute(r, allowed))
}

// Server returns an http.Server with the timeouts that the Handler relies on. It has none for whole requests and
// answers: the Handler drops callers that make no progress, so that long streams live and idle ones do not, and limits
// the connections without a valid token. Shutting it down closes the Handler.
func Server(h *Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnState:         h.followConn,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(h.cfg.Log.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(h.Close)
	return s
}
