package main

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"strings"

	"drover"
	"drover/internal/config"
	"drover/internal/httpapi"
	"drover/internal/web"
)

// addDashboard has an API's handler serve the dashboard beside it, whose pages ask it as their readers would.
func addDashboard(fleet string, key [32]byte, c *config.Config, trying web.Simulator, log *slog.Logger, api httpapi.Config) (*httpapi.Handler, *web.Handler) {
	var handler *httpapi.Handler
	pages := web.New(web.Config{
		Fleet: fleet, Authenticate: api.Authenticate, Known: httpapi.Known, Key: key, Log: log, Simulator: trying,
		Secure:  strings.HasPrefix(c.URL, "https://"),
		Service: func(token drover.Secret) drover.Service { return httpapi.Within(handler, token) },
	})
	api.Pages, api.Login = pages, pages.Login
	handler = httpapi.New(api)
	return handler, pages
}

// sessionKey seals the sessions of browsers. It follows from the local token, so that they outlive the controller.
func sessionKey(token drover.Secret) (key [32]byte, err error) {
	derived, err := hkdf.Key(sha256.New, []byte(token.Reveal()), nil, "drover sessions of browsers", len(key))
	return [32]byte(derived), err
}

// freshKey is good for as long as this process.
func freshKey() (key [32]byte) {
	rand.Read(key[:])
	return key
}
