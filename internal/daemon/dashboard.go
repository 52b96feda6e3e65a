package daemon

import (
	"crypto/hkdf"
	"crypto/sha256"

	"drover"
	"drover/internal/httpapi"
	"drover/internal/web"
)

// Dashboard configures the dashboard beside an API.
type Dashboard struct {
	Fleet     string
	Key       [32]byte      // seals the sessions of browsers
	Secure    bool          // browsers use only https
	Simulator web.Simulator // may be nil
}

// WithDashboard makes a handler of an API with the dashboard beside it, whose pages use the API as their readers.
func WithDashboard(b Dashboard, api httpapi.Config) (*httpapi.Handler, *web.Handler) {
	var handler *httpapi.Handler
	pages := web.New(web.Config{
		Fleet: b.Fleet, Authenticate: api.Authenticate, Known: httpapi.Known, Key: b.Key, Log: api.Log, Simulator: b.Simulator, Secure: b.Secure,
		Service: func(token drover.Secret) drover.Service { return httpapi.Within(handler, token) },
	})
	api.Pages, api.Login = pages, pages.Login
	handler = httpapi.New(api)
	return handler, pages
}

// sessionKey returns the key that seals the sessions of browsers. It is derived from the local token, so that sessions
// outlive the controller.
func sessionKey(token drover.Secret) (key [32]byte, err error) {
	derived, err := hkdf.Key(sha256.New, []byte(token.Reveal()), nil, "drover sessions of browsers", len(key))
	return [32]byte(derived), err
}
