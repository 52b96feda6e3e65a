package remote

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"drover"
)

// algorithms returns the algorithms that we accept. It excludes SHA-1, CBC, finite-field groups and MACs over the plain
// text, and host certificates, whose authorities we have no reason to trust.
func algorithms() (ssh.Config, []string) {
	config := ssh.Config{
		KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519,
			ssh.KeyExchangeECDHP256, ssh.KeyExchangeECDHP384, ssh.KeyExchangeECDHP521},
		Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305, ssh.CipherAES128CTR, ssh.CipherAES256CTR},
		MACs:    []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
	}
	hostKeys := []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	return config, hostKeys
}

// login shakes hands, has the host key verified and logs in.
func (t Target) login(ctx context.Context, raw net.Conn, d *deadlines) (*session, error) {
	s := &session{raw: raw, ctx: ctx, target: t, deadlines: d}
	config, hostKeys := algorithms()
	conn, channels, requests, err := ssh.NewClientConn(raw, t.Address, &ssh.ClientConfig{
		Config:            config,
		User:              t.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(t.Signers...)},
		HostKeyCallback:   s.checkHostKey,
		HostKeyAlgorithms: hostKeys,
		ClientVersion:     "SSH-2.0-Drover",
	})
	if err != nil {
		return nil, d.fail(s.loginError(err))
	}
	ended := make(chan struct{})
	s.conn = connection{conn, ended}
	go func() {
		refuseAll(channels, requests)
		close(ended)
	}()
	return s, nil
}

// session is a connection that is to become a Conn.
type session struct {
	raw       net.Conn
	ctx       context.Context // of the Connect that this is a part of
	target    Target
	deadlines *deadlines
	conn      connection

	key      ssh.PublicKey                // the accepted one
	first    *RunFirst                    // what must run to verify the key; nil for nothing
	unproved bool                         // until Proof has been read back
	compared bool                         // the runner there has the same content as ours
	refusal  atomic.Pointer[drover.Error] // why a host key was not accepted
}

// loginError classifies the SSH library's error.
func (s *session) loginError(err error) error {
	if refusal := s.refusal.Load(); refusal != nil {
		return refusal
	}
	if none, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		return drover.Errorf(drover.KindUnsupported, "the instance's SSH server offers no %s that Drover considers safe, only %s", none.What,
			printable(strings.Join(none.RequestedAlgorithms, ", ")))
	}
	text := printable(err.Error())
	// The library gives these two no type of their own.
	if strings.Contains(text, "unable to authenticate") || strings.Contains(text, "Too many authentication failures") {
		return drover.Errorf(drover.KindAuthentication, "the instance rejects every login key for user %s (%d tried)", s.target.User, len(s.target.Signers)).
			WithHint("check the user name, and that the image installs the login key")
	}
	return drover.Errorf(drover.KindUnreachable, "%s", strings.TrimPrefix(text, "ssh: handshake failed: "))
}

// refuseAll refuses all requests from the instance's SSH server. It answers them, since an answer shows that we are
// alive.
func refuseAll(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	for channels != nil || requests != nil {
		select {
		case c, ok := <-channels:
			if !ok {
				channels = nil
				continue
			}
			// If the refusal cannot be sent, a reader of the connection gets an error too.
			_ = c.Reject(ssh.Prohibited, "the instance is not allowed to open channels")
		case r, ok := <-requests:
			if !ok {
				requests = nil
				continue
			}
			_ = r.Reply(false, nil)
		}
	}
}
