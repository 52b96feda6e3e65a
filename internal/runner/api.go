package runner

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/internal/atomicfile"
	"drover/internal/wire"
)

const apiPortFile = "api.port"

// api is the listener behind DROVER_API on the instance's loopback. The controller takes its connections over SSH.
type api struct {
	listener net.Listener

	mu      sync.Mutex
	last    int64
	waiting map[int64]net.Conn
	open    int // waiting or taken
}

// newAPI listens on the previous daemon's port, so that running jobs do not notice the change, or else on another.
func newAPI(log *log.Logger) (*api, error) {
	last := 0
	if text, err := os.ReadFile(apiPortFile); err == nil {
		last, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	for _, port := range apiPorts(last) {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		// Connections of earlier daemons may have used any number up to the present time.
		a := &api{listener: l, last: time.Now().UnixMilli(), waiting: make(map[int64]net.Conn)}
		if err := atomicfile.Write(apiPortFile, []byte(strconv.Itoa(l.Addr().(*net.TCPAddr).Port))); err != nil {
			log.Printf("storing the port of DROVER_API: %v", err)
		}
		return a, nil
	}
	return nil, errors.New("no port is free for DROVER_API to listen on")
}

// apiPorts returns the ports to try, in order. If attempts are isolated, no attempt may be able to listen on these
// ports: while one daemon replaces another, it could collect other attempts' tokens.
func apiPorts(last int) []int {
	if os.Getenv(wire.ApartVariable) == "" {
		return []int{last, 0}
	}
	const first, many = 512, 512 // only root may listen below 1024
	if last < first || last >= first+many {
		last = first + rand.IntN(many)
	}
	ports := make([]int, many)
	for n := range ports {
		ports[n] = first + (last-first+n)%many
	}
	return ports
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

// waitingConns lists the connections that no controller has taken.
func (a *api) waitingConns() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.waiting))
}

// take returns a waiting connection, once. The caller must release it.
func (a *api) take(n int64) (net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	conn, ok := a.waiting[n]
	if !ok {
		return nil, fmt.Errorf("connection %d is gone", n)
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
