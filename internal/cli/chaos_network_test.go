//go:build chaos

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// network stands between the controller and its instances: instances are announced on one loopback address and listen
// on another. TCP never loses or reorders bytes within a connection; everything else that a network can do happens.
type network struct {
	dice    *dice
	records string // pattern of the instances' records
	calm    chan struct{}

	mu      sync.Mutex
	dark    map[uint16]time.Time // until when an instance's port is cut off; guarded by mu
	carried map[*carrier]bool    // guarded by mu
	fates   map[string]int       // connections by their fate; guarded by mu
}

func newNetwork(d *dice, records string) *network {
	return &network{
		dice: d, records: records, calm: make(chan struct{}),
		dark: map[uint16]time.Time{}, carried: map[*carrier]bool{}, fates: map[string]int{},
	}
}

// run listens for every instance while a record of it exists, until the context ends.
func (n *network) run(ctx context.Context) {
	listeners := map[string]net.Listener{}
	for {
		found, _ := filepath.Glob(n.records)
		there := map[string]bool{}
		for _, path := range found {
			there[path] = true
			if listeners[path] == nil {
				if l, err := n.listen(path); err == nil {
					listeners[path] = l
				}
			}
		}
		for path, l := range listeners {
			if !there[path] || ctx.Err() != nil {
				l.Close()
				delete(listeners, path)
			}
		}
		select {
		case <-ctx.Done():
			n.cut()
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// listen forwards connections to the instance with this record.
func (n *network) listen(path string) (net.Listener, error) {
	var record struct{ Address netip.AddrPort }
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", record.Address.String())
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go n.carry(conn.(*net.TCPConn), record.Address.Port())
			}
		}
	}()
	return l, nil
}

// fate is what happens to one connection.
type fate struct {
	name  string
	late  time.Duration // until it is answered, so that later ones overtake it
	lag   time.Duration // of each read
	chunk int           // the maximum size of a read
	end   time.Duration // the connection is cut after this time; 0: never
	quiet time.Duration // it falls silent after this time, without being closed; 0: never
}

// draw draws a connection's fate.
func (n *network) draw() fate {
	f := fate{name: "plain", chunk: 32 << 10}
	select {
	case <-n.calm:
		return f
	default:
	}
	switch x := n.dice.float(); {
	case x < 0.12:
		f.name, f.late = "late", n.dice.between(0, 1500*time.Millisecond)
	case x < 0.22:
		f.name, f.lag = "slow", n.dice.between(2*time.Millisecond, 80*time.Millisecond)
	case x < 0.30:
		f.name, f.lag, f.chunk = "narrow", 5*time.Millisecond, 4<<10
	case x < 0.42:
		f.name, f.end = "cut", n.dice.between(time.Millisecond, 5*time.Second)
	case x < 0.46:
		f.name, f.quiet = "silent at once", time.Nanosecond
	case x < 0.50:
		f.name, f.quiet = "silent later", n.dice.between(time.Millisecond, 4*time.Second)
	}
	return f
}

// carrier carries one connection.
type carrier struct {
	fate
	network *network
	port    uint16
	began   time.Time
	done    chan struct{}
	stop    func()
}

// carry connects a client to the instance on a port, and applies a fate.
func (n *network) carry(client *net.TCPConn, port uint16) {
	c := &carrier{fate: n.draw(), network: n, port: port, began: time.Now(), done: make(chan struct{})}
	c.stop = sync.OnceFunc(func() { close(c.done) })
	n.mu.Lock()
	n.fates[c.name]++
	n.carried[c] = true
	n.mu.Unlock()
	defer func() {
		c.stop()
		client.SetLinger(0)
		client.Close()
		n.mu.Lock()
		delete(n.carried, c)
		n.mu.Unlock()
	}()
	if !c.pause(c.late) || !c.passes() {
		return
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	instance := conn.(*net.TCPConn)
	defer instance.Close()
	defer instance.SetLinger(0)
	if c.end > 0 {
		defer time.AfterFunc(c.end, c.stop).Stop()
	}
	go c.pump(instance, client)
	go c.pump(client, instance)
	<-c.done
}

// pump forwards one direction.
func (c *carrier) pump(to, from net.Conn) {
	defer c.stop()
	buffer := make([]byte, c.chunk)
	for {
		n, err := from.Read(buffer)
		if err != nil || !c.pause(c.lag) || !c.passes() {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// passes waits until the network lets data of this connection through, and reports whether it ever does.
func (c *carrier) passes() bool {
	for {
		if c.quiet > 0 && time.Since(c.began) > c.quiet {
			select {
			case <-c.done:
			case <-c.network.calm:
			}
			return false
		}
		wait := time.Until(c.network.darkUntil(c.port))
		if wait <= 0 {
			return true
		}
		if !c.pause(wait) {
			return false
		}
	}
}

// pause waits, and reports whether the connection still exists.
func (c *carrier) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-c.done:
		return false
	case <-time.After(d):
		return true
	}
}

func (n *network) darkUntil(port uint16) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dark[port]
}

// darken cuts off one instance or, with a share of 1, all of them for a while. It returns how many.
func (n *network) darken(share float64, d time.Duration) (instances int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ports := map[uint16]bool{}
	for c := range n.carried {
		ports[c.port] = true
	}
	for port := range ports {
		if share == 1 || instances == 0 {
			n.dark[port] = time.Now().Add(d)
			instances++
		}
	}
	return instances
}

// cut cuts every connection, and returns how many.
func (n *network) cut() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.carried {
		c.stop()
	}
	return len(n.carried)
}

// settle ends the trouble: it cuts silent connections, ends darkness, and forwards new connections.
func (n *network) settle() {
	close(n.calm)
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.dark)
}
