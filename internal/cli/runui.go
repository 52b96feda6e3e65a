package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"

	"drover"
	"drover/internal/daemon"
	"drover/internal/httpapi"
	"drover/internal/remote"
	"drover/internal/web"
)

// serveAPI serves the run's jobs at DROVER_API. Nobody else can reach it, unless the run is shown in a browser: then it
// also listens on loopback until ctx ends, for whoever opened the link.
func (s *session) serveAPI(ctx context.Context) (*httpapi.Handler, error) {
	cfg := httpapi.Config{Service: s.fleet.Controller, Authenticate: s.fleet.Attempt, Log: s.ui.log(), Version: s.app.program.Version}
	if !s.browsed {
		return httpapi.New(cfg), nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	token := drover.NewSecret("drover_run_" + rand.Text())
	cfg.Reach.Hosts = httpapi.ReachOf(listener.Addr().String(), "").Hosts
	cfg.Authenticate = s.letIn(token)
	board := web.Config{Fleet: s.folder.ID}
	rand.Read(board.Key[:])
	handler, pages := daemon.WithDashboard(board, cfg)
	server := httpapi.Server(handler)
	context.AfterFunc(ctx, func() { server.Close() })
	go server.Serve(listener)
	path, err := pages.Login(token)
	if err != nil {
		return nil, err
	}
	link := "http://" + listener.Addr().String() + path
	s.ui.say("to watch it in a browser (link valid for a minute): %s", link)
	return handler, s.app.browse(ctx, link)
}

// letIn identifies the holder of a token: the user who started the run, or one of its attempts.
func (s *session) letIn(own drover.Secret) func(context.Context, drover.Secret) (drover.Identity, error) {
	return func(ctx context.Context, token drover.Secret) (drover.Identity, error) {
		switch {
		case subtle.ConstantTimeCompare([]byte(token.Reveal()), []byte(own.Reveal())) == 1:
			return drover.Identity{User: daemon.Owner(), Role: drover.RoleOperate}, nil
		case remote.IsAttemptToken(token):
			return s.fleet.Attempt(ctx, token)
		}
		return drover.Identity{}, drover.Errorf(drover.KindAuthentication, "this token belongs to another run")
	}
}
