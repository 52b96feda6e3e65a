package daemon

import (
	"crypto/hkdf"
	"crypto/sha256"

	"drover"
	"drover/internal/httpapi"
	"drover/internal/web"
)

// WithDashboard returns a handler that serves an API and the dashboard, and the dashboard's own handler. The pages call
// the API with their reader's token. It sets the fields of the dashboard's configuration that follow from the API.
func WithDashboard(board web.Config, api httpapi.Config) (*httpapi.Handler, *web.Handler) {
	var handler *httpapi.Handler
	board.Authenticate, board.Known, board.Log = api.Authenticate, httpapi.Known, api.Log
	board.Service = func(token drover.Secret) drover.Service { return httpapi.Within(handler, token) }
	pages := web.New(board)
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
