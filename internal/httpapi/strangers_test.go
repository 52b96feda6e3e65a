package httpapi_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"drover/internal/httpapi"
)

// TestConnectionsOfStrangers holds many connections open without a valid token.
func TestConnectionsOfStrangers(t *testing.T) {
	_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Limits.Strangers = 3 })
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, token string) int {
		if _, err := io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	dropped := func(conn net.Conn) bool {
		conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	friend := dial()
	if status := ask(friend, "view"); status != 200 {
		t.Fatalf("a good token: %d", status)
	}
	var held []net.Conn
	for range 10 {
		conn := dial()
		if status := ask(conn, "wrong"); status != 401 { // so that they arrive in this order
			t.Fatalf("a wrong token: %d", status)
		}
		held = append(held, conn)
	}
	eventually(t, func() bool { return dropped(held[6]) })
	for i, conn := range held {
		if want := i < 7; dropped(conn) != want {
			t.Errorf("of ten connections without a valid token, number %d was dropped: %v", i, !want)
		}
	}
	friend.SetReadDeadline(time.Time{})
	if status := ask(friend, "view"); status != 200 {
		t.Errorf("a connection that had a valid token before: %d", status)
	}
	if status := ask(dial(), "view"); status != 200 {
		t.Errorf("a new connection with a valid token: %d", status)
	}
}
