package benchfleet

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover/driver"
)

// instance is one SSH server.
type instance struct {
	said    driver.Instance // guarded by its cloud's mu, like everything else in it that may change
	vcpus   int
	created time.Time
	ready   time.Time // when it starts to accept logins
	runner  *runner

	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

// bill returns the vCPU time since its creation.
func (in *instance) bill() time.Duration { return time.Since(in.created) * time.Duration(in.vcpus) }

// listen starts serving clients that have the login key.
func (in *instance) listen(key ssh.Signer, login ssh.PublicKey) (err error) {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(offered.Marshal(), login.Marshal()) {
				return nil, errors.New("this key is not allowed to log in")
			}
			return nil, nil
		},
	}
	config.AddHostKey(key)
	if in.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	in.conns = map[net.Conn]struct{}{}
	in.said.Addresses = driver.Addresses{Public: in.listener.Addr().String(), User: "root"}
	in.serving.Go(func() { in.accept(config) })
	return nil
}

func (in *instance) accept(config *ssh.ServerConfig) {
	for {
		conn, err := in.listener.Accept()
		if err != nil {
			return
		}
		// While it boots, nothing answers on the port.
		if time.Now().Before(in.ready) || !in.keep(conn) {
			conn.Close()
			continue
		}
		in.serving.Go(func() { in.serve(conn, config) })
	}
}

// keep makes close also close a connection. It reports false if the instance is closed already.
func (in *instance) keep(conn net.Conn) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.conns[conn] = struct{}{}
	}
	return !in.closed
}

// close ends the instance and everything that runs on it.
func (in *instance) close() {
	in.mu.Lock()
	in.closed = true
	for conn := range in.conns {
		conn.Close()
	}
	in.mu.Unlock()
	in.listener.Close()
	in.serving.Wait()
	in.runner.close()
}

// serve serves one connection until it ends.
func (in *instance) serve(conn net.Conn, config *ssh.ServerConfig) {
	defer func() {
		conn.Close()
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.conns, conn)
	}()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { ssh.DiscardRequests(requests) })
	for ch := range channels {
		if ch.ChannelType() != "session" {
			// If a refusal cannot be sent, the next read fails.
			_ = ch.Reject(ssh.UnknownChannelType, "only sessions are supported")
			continue
		}
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		work.Go(func() { in.session(channel, requests) })
	}
}

// session runs the one command of a session.
func (in *instance) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		var exec struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &exec) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		go ssh.DiscardRequests(requests)
		code := in.runner.execute(exec.Command, channel)
		// A client that does not get the exit status has disconnected.
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}
