package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// strangers are the connections without a valid token so far, or the idle ones. Their number is limited: a new one
// replaces the oldest, so that a caller who holds many open does not hinder callers with a token, which needs only a
// moment.
type strangers struct {
	most int

	mu    sync.Mutex
	order *list.List                 // of net.Conn, the oldest in front; guarded by mu
	at    map[net.Conn]*list.Element // guarded by mu
}

func newStrangers(most int) *strangers {
	return &strangers{most: most, order: list.New(), at: map[net.Conn]*list.Element{}}
}

// came adds a connection, and closes the oldest if that is one too many.
func (s *strangers) came(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[conn] = s.order.PushBack(conn)
	for s.order.Len() > s.most {
		oldest := s.order.Remove(s.order.Front()).(net.Conn)
		delete(s.at, oldest)
		oldest.Close()
	}
}

// leaves removes a connection that has ended, or is no longer a stranger's.
func (s *strangers) leaves(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.at[conn]; ok {
		s.order.Remove(e)
		delete(s.at, conn)
	}
}

type connKey struct{}

// withConn stores in the context of requests the connection over which they came.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// known removes the connection of a request that had a valid token.
func (s *strangers) known(ctx context.Context) {
	if conn, ok := ctx.Value(connKey{}).(net.Conn); ok {
		s.leaves(conn)
	}
}

// followConn follows the connections of a server.
func (h *Handler) followConn(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		h.unknown.came(conn)
	case http.StateIdle:
		h.idle.came(conn)
	case http.StateActive:
		h.idle.leaves(conn)
	case http.StateClosed, http.StateHijacked:
		h.unknown.leaves(conn)
		h.idle.leaves(conn)
	}
}
