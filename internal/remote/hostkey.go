package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"

	"drover"
)

// checkHostKey accepts a host key that the target's VerifyHostKey accepts. The SSH library calls it again at each
// rekeying, long after Connect: the key must then be the same.
func (s *session) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if s.key != nil {
		if bytes.Equal(s.key.Marshal(), key.Marshal()) {
			return nil
		}
		return s.refuse(drover.Errorf(drover.KindHostKey, "the host key changed from %s to %s within one connection",
			ssh.FingerprintSHA256(s.key), ssh.FingerprintSHA256(key)))
	}
	said := s.verify(key, nil)
	if errors.As(said, &s.first) {
		said = nil // accepted until the command's output is known
	}
	if refusal := s.judge(key, said); refusal != nil {
		return s.refuse(refusal)
	}
	s.key = key
	s.deadlines.begin(step{fmt.Sprintf("logging in as %s", s.target.User), drover.KindUnreachable, s.target.Timeouts.Login})
	return nil
}

// verify calls VerifyHostKey, with the output of a command or nil.
func (s *session) verify(key ssh.PublicKey, output []byte) error {
	s.begin("verifying the host key", s.target.Timeouts.Verify)
	ctx, cancel := context.WithTimeout(s.ctx, s.target.Timeouts.Verify)
	defer cancel()
	return s.target.VerifyHostKey(ctx, key, output)
}

func (s *session) refuse(why *drover.Error) error {
	s.refusal.Store(why)
	return why
}

// judge turns the result of VerifyHostKey into a refusal, or nil.
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
		return drover.Errorf(drover.KindHostKey, "the host key %s does not belong to this instance: %s", print, e.Message)
	case drover.KindUnsupported:
		if s.unproved = s.target.Proof.Path != ""; s.unproved {
			return nil
		}
		return drover.Errorf(drover.KindHostKey, "the host key %s cannot be verified, and no secret was installed to verify it", print)
	default:
		return drover.Errorf(drover.KindTransient, "the host key %s could not be verified: %s", print, e.Message)
	}
}
