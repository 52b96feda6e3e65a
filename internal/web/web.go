// Package web is the dashboard: pages for browsers about a drover.Service.
//
// The model: the server renders a whole page with a template, from what the Service answers at that moment. It renders
// the live part again every second or so and sends it as a server-sent event if it has changed; htmx puts it into the
// page. So a reader without JavaScript sees the same page, as it was when requested. Changes are plain forms.
//
// A session identifies the reader: a cookie with the bearer token with which somebody requested a one-time link, sealed
// with a key of the controller. Each page calls the Service as the bearer of that token, and so shows and does what the
// token allows, and nothing once it is revoked.
//
// The invariants: names, labels, reasons and logs are hostile text. Nothing from them becomes markup; the content
// security policy allows no script or style but the files of this package, and nothing from another host. The work of a
// page does not grow with the number of jobs: lists are read a page at a time. An open page takes less than a hundredth
// of a core: the pause before the next live part is at least a hundred times as long as rendering the last one took.
package web

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"drover"
	"drover/internal/logkey"
)

// Config configures a Handler.
type Config struct {
	Fleet        string
	Authenticate func(ctx context.Context, token drover.Secret) (drover.Identity, error)
	Service      func(token drover.Secret) drover.Service // as the bearer of the token sees it
	Known        func(ctx context.Context)                // called for each request with a valid session; may be nil
	Key          [32]byte                                 // seals sessions: whoever has it can make them
	Secure       bool                                     // browsers use only https
	Log          *slog.Logger
	Simulator    Simulator // nil: there is no such page
	Shared       bool      // every token reads what belongs to any user
}

// Handler serves the pages.
type Handler struct {
	cfg      Config
	sessions *sessions
	pages    map[string]*page // by pattern
	mux      *http.ServeMux
	version  string // of the static files
	streams  streams
	sums     *sums
	trying   chan struct{} // holds an element while a configuration is tried
}

// SetSecure sets whether browsers use only https from now on.
func (h *Handler) SetSecure(so bool) { h.sessions.secure.Store(so) }

//go:embed templates static
var files embed.FS

// New makes a Handler.
func New(cfg Config) *Handler {
	h := &Handler{cfg: cfg, sessions: newSessions(cfg), mux: http.NewServeMux(), version: versionOfFiles(), streams: streams{open: map[string]int{}}}
	h.sums, h.trying = newSums(), make(chan struct{}, 1)
	h.pages = parsePages(h.version)
	for pattern := range pages() {
		if pattern == "/whatif" && cfg.Simulator == nil {
			continue
		}
		h.mux.Handle("GET "+pattern, h.reading(h.pages[pattern]))
	}
	for pattern, do := range h.actions() {
		h.mux.Handle("POST "+pattern, h.acting(do))
	}
	h.mux.HandleFunc("GET /jobs/{id}/logs/follow", h.asReader(h.followLog))
	h.mux.HandleFunc("GET /jobs/{id}/logs/raw", h.asReader(h.rawLog))
	h.mux.HandleFunc("GET /jobs/{id}/outputs/file", h.asReader(h.output))
	if cfg.Simulator != nil {
		h.mux.HandleFunc("POST /whatif", h.asReader(h.tryIt))
	}
	h.mux.HandleFunc("GET /login", h.login)
	h.mux.HandleFunc("POST /logout", h.logout)
	h.mux.Handle("GET /static/", http.HandlerFunc(h.static))
	h.mux.HandleFunc("/", h.asReader(func(w http.ResponseWriter, r *request) error {
		return drover.Errorf(drover.KindNotFound, "page %.100q does not exist", r.URL.Path)
	}))
	return h
}

// Login makes a link with which a browser can log in with a token, once, within a minute.
func (h *Handler) Login(token drover.Secret) (string, error) {
	code, err := h.sessions.offer(token, time.Now())
	return "/login?code=" + code, err
}

// policy lets a page load what this package serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm is the size limit of a form.
const maxForm = 64 << 10

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		h.fail(w, nil, drover.Errorf(drover.KindForbidden, "this form was sent from another site"))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// static serves the files that pages use. Their version is in the address, so that browsers can cache them.
func (h *Handler) static(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/") {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == h.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, files, path.Clean("/" + r.URL.Path)[1:])
}

func versionOfFiles() string {
	sum := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		sum.Write(text)
		return err
	})
	if err != nil {
		panic(err) // they are embedded in the program
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// request is a request of a logged-in reader.
type request struct {
	*http.Request
	svc   drover.Service // as the reader sees it
	who   drover.Identity
	now   time.Time
	until time.Time // the end of the session
}

// may reports whether the reader has a role, so that pages do not show forms that would be refused.
func (r *request) may(role drover.Role) bool { return r.who.Role.Allows(role) }

// enter returns the request of a logged-in reader. KindAuthentication: there is no session, or its token is no longer
// valid.
func (h *Handler) enter(r *http.Request) (*request, error) {
	token, until, err := h.sessions.of(r, time.Now())
	if err != nil {
		return nil, err
	}
	who, err := h.cfg.Authenticate(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if h.cfg.Known != nil {
		h.cfg.Known(r.Context())
	}
	return &request{Request: r, svc: h.cfg.Service(token), who: who, now: time.Now(), until: until}, nil
}

// asReader calls serve for logged-in readers, and shows its errors.
func (h *Handler) asReader(serve func(http.ResponseWriter, *request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := h.enter(r)
		if err == nil {
			err = serve(w, in)
		}
		if err != nil {
			h.fail(w, in, err)
		}
	}
}

// fail answers with a page about an error.
func (h *Handler) fail(w http.ResponseWriter, r *request, err error) {
	if r != nil && errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	e := drover.AsError(err, drover.KindInternal)
	if e.Kind == drover.KindInternal {
		h.cfg.Log.Error("cannot make a page", logkey.Error, err)
	}
	name := "error"
	if e.Kind == drover.KindAuthentication {
		name = "login"
	}
	w.WriteHeader(e.Kind.HTTPStatus())
	if err := h.pages[name].whole(w, h.frame(r, h.pages[name], e)); err != nil {
		h.cfg.Log.Error("cannot make a page", logkey.Error, err)
	}
}
