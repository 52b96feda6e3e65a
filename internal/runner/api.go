package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/internal/wire"
)

const apiPortFile = "api.port"

// api is what DROVER_API names: a listener on the instance's loopback, whose connections the controller takes over SSH.
type api struct {
	listener net.Listener

	mu      sync.Mutex
	last    int64
	waiting map[int64]net.Conn
	open    int // waiting or taken
}

// newAPI listens on the port of the daemon before, so that running jobs need not notice its end, or on any other. Where attempts are kept apart it is one
// that none of them may listen on: it could take the others' tokens while daemons change.
func newAPI() (*api, error) {
	if os.Getenv(wire.ApartVariable) != "" {
		return newPrivilegedAPI()
	}
	port := "0"
	if text, err := os.ReadFile(apiPortFile); err == nil {
		port = strings.TrimSpace(string(text))
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listening for DROVER_API: %w", err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err == nil {
		err = writeAtomically(apiPortFile, []byte(port))
	}
	// Connections of a predecessor may have used any number up to now.
	return &api{listener: l, last: time.Now().UnixMilli(), waiting: make(map[int64]net.Conn)}, err
}

// newPrivilegedAPI listens on a port that only root may listen on.
func newPrivilegedAPI() (*api, error) {
	const first, many = 512, 512
	tries := []int{first + rand.IntN(many)}
	if text, err := os.ReadFile(apiPortFile); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && port >= first && port < first+many {
			tries[0] = port
		}
	}
	for n := range many {
		tries = append(tries, first+(tries[0]+n)%many)
	}
	for _, port := range tries {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return &api{listener: l, last: time.Now().UnixMilli(), waiting: make(map[int64]net.Conn)}, writeAtomically(apiPortFile, []byte(strconv.Itoa(port)))
		}
	}
	return nil, errors.New("listening for DROVER_API: no port below 1024 is free")
}

func (a *api) url() string { return "http://" + a.listener.Addr().String() }

// run accepts connections and announces each, until the context ends.
func (a *api) run(ctx context.Context, announce func(int64)) {
	stop := context.AfterFunc(ctx, func() { a.listener.Close() })
	defer stop()
	for {
		conn, err := a.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if n, ok := a.admit(conn); ok {
			announce(n)
			time.AfterFunc(wire.APIPatience, func() { a.expire(n) })
		} else {
			conn.Close()
		}
	}
}

func (a *api) admit(conn net.Conn) (n int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == wire.APIConns {
		return 0, false
	}
	a.open++
	a.last++
	a.waiting[a.last] = conn
	return a.last, true
}

// waitingConns lists the connections that nobody has taken.
func (a *api) waitingConns() (list []int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range a.waiting {
		list = append(list, n)
	}
	return list
}

// take hands out a waiting connection, once; release it afterwards.
func (a *api) take(n int64) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	conn, ok := a.waiting[n]
	if !ok {
		return nil, fmt.Errorf("connection %s is gone", strconv.FormatInt(n, 10))
	}
	delete(a.waiting, n)
	return conn, nil
}

func (a *api) release(conn net.Conn) {
	conn.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
}

func (a *api) expire(n int64) {
	if conn, err := a.take(n); err == nil {
		a.release(conn)
	}
}
