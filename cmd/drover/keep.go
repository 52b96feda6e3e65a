package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"time"

	"drover/internal/engine"
)

// tellKept says how to log in to the instances of failed jobs that are kept for a look.
func (s *session) tellKept(ctx context.Context) error {
	var kept []engine.Instance
	err := s.fleet.controller.Query(ctx, func(e *engine.Engine) {
		for _, in := range e.Instances() {
			if in.KeepUntil > e.Status().Now {
				kept = append(kept, in)
			}
		}
	})
	if err != nil || len(kept) == 0 || s.interrupted {
		return err
	}
	for _, in := range kept {
		line, err := s.loginLine(in)
		if err != nil {
			line = "how to log in is not known: " + err.Error()
		}
		s.ui.say("instance %s is kept until %s for a look:\n    %s", in.Name, in.KeepUntil.Std().Local().Format(time.TimeOnly), line)
	}
	s.ui.say("Ctrl-C ends them now")
	return nil
}

// loginLine is a command that logs in to an instance, its host key verified.
func (s *session) loginLine(in engine.Instance) (string, error) {
	address, user := s.fleet.controller.Address(in)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	login, err := s.fleet.key.LoginKeyFile()
	if err != nil {
		return "", err
	}
	proof, err := s.fleet.key.HostKey(in.Name)
	if err != nil {
		return "", err
	}
	known := fmt.Sprintf("[%s]:%s ssh-ed25519 %s\n", host, port, base64.StdEncoding.EncodeToString(proof.Public))
	hosts := "known_hosts." + in.Name
	for name, content := range map[string]string{"login.key": login.Reveal(), hosts: known} {
		if err := os.WriteFile(s.folder.file(name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("ssh -i %s -o UserKnownHostsFile=%s -p %s %s@%s", s.folder.file("login.key"), s.folder.file(hosts), port, user, host), nil
}
