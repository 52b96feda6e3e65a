package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"drover"
)

// algorithms are what we agree to. Everything with SHA-1, CBC, finite-field groups or a MAC over the plain text stays out, and so do
// host certificates, whose authorities we have no reason to trust.
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
	s.conn = conn
	go refuseAll(channels, requests)
	return s, nil
}

// session is a connection on its way to become a Conn.
type session struct {
	raw       net.Conn
	ctx       context.Context // of the Connect that this is a part of
	target    Target
	deadlines *deadlines
	conn      ssh.Conn

	key      ssh.PublicKey                // the one that was accepted
	first    *RunFirst                    // has to be run before the key is proved; nil for nothing
	unproved bool                         // until Proof has been read back
	compared bool                         // the runner there is ours
	refusal  atomic.Pointer[drover.Error] // why a host key was not accepted
}

// checkHostKey accepts the host key that the target vouches for. Each renewal of the session's keys asks again, long after Connect:
// the key must then be the same.
func (s *session) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if s.key != nil {
		if bytes.Equal(s.key.Marshal(), key.Marshal()) {
			return nil
		}
		return s.refuse(drover.Errorf(drover.KindHostKey, "the host key changed from %s to %s within one connection",
			ssh.FingerprintSHA256(s.key), ssh.FingerprintSHA256(key)))
	}
	verify := step{"verifying the host key", drover.KindTransient, s.target.Timeouts.Verify}
	s.deadlines.begin(verify)
	ctx, cancel := context.WithTimeout(s.ctx, verify.limit)
	defer cancel()
	said := s.target.VerifyHostKey(ctx, key, nil)
	if errors.As(said, &s.first) {
		said = nil // for as long as it takes to see what the command prints
	}
	if refusal := s.judge(key, said); refusal != nil {
		return s.refuse(refusal)
	}
	s.key = key
	s.deadlines.begin(step{fmt.Sprintf("logging in as %s", s.target.User), drover.KindUnreachable, s.target.Timeouts.Login})
	return nil
}

func (s *session) refuse(why *drover.Error) error {
	s.refusal.Store(why)
	return why
}

// judge turns what was said of a host key into a refusal, or none.
func (s *session) judge(key ssh.PublicKey, said error) *drover.Error {
	print := ssh.FingerprintSHA256(key)
	if said == nil {
		return nil
	}
	if errors.Is(said, context.DeadlineExceeded) || errors.Is(said, context.Canceled) {
		return drover.Errorf(drover.KindTransient, "the host key %s could not be verified in time", print)
	}
	switch e := drover.AsError(said, drover.KindHostKey); e.Kind {
	case drover.KindHostKey, drover.KindInvalid, drover.KindNotFound:
		return drover.Errorf(drover.KindHostKey, "the host key %s is not this instance's: %s", print, e.Message)
	case drover.KindUnsupported:
		if s.unproved = s.target.Proof.Path != ""; s.unproved {
			return nil
		}
		return drover.Errorf(drover.KindHostKey, "the host key %s cannot be verified, and no secret was planted to prove it", print)
	default:
		return drover.Errorf(drover.KindTransient, "the host key %s could not be verified: %s", print, e.Message)
	}
}

// loginError classes what the SSH library says.
func (s *session) loginError(err error) error {
	if refusal := s.refusal.Load(); refusal != nil {
		return refusal
	}
	var none *ssh.AlgorithmNegotiationError
	if errors.As(err, &none) {
		return drover.Errorf(drover.KindUnsupported, "the instance's SSH server has no %s that is considered safe, only %s", none.What,
			printable(strings.Join(none.RequestedAlgorithms, ", ")))
	}
	text := printable(err.Error())
	// The library gives these two no type of their own.
	if strings.Contains(text, "unable to authenticate") || strings.Contains(text, "Too many authentication failures") {
		return drover.Errorf(drover.KindAuthentication, "the instance accepts none of %d login keys for user %s", len(s.target.Signers), s.target.User).
			WithHint("check the user, and that the image installs the login key")
	}
	return drover.Errorf(drover.KindUnreachable, "%s", strings.TrimPrefix(text, "ssh: handshake failed: "))
}

// refuseAll answers what the instance's SSH server asks of us on its own: we grant nothing, but an answer shows that we live.
func refuseAll(channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	for channels != nil || requests != nil {
		select {
		case c, ok := <-channels:
			if !ok {
				channels = nil
				continue
			}
			// A refusal that cannot be sent is noticed by whoever reads.
			_ = c.Reject(ssh.Prohibited, "nothing may be opened from here")
		case r, ok := <-requests:
			if !ok {
				requests = nil
				continue
			}
			_ = r.Reply(false, nil)
		}
	}
}
