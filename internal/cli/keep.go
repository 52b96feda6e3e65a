package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"drover/internal/engine"
)

// tellKept says how to log in to the instances of failed jobs that are kept for a look.
func (s *session) tellKept(ctx context.Context) error {
	var kept []engine.Instance
	err := s.fleet.Controller.Query(ctx, func(e *engine.Engine) {
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
		line, err := s.loginLine(ctx, in.Name)
		if err != nil {
			line = "how to log in is not known: " + err.Error()
		}
		s.ui.say("instance %s is kept until %s for a look:\n    %s", in.Name, in.KeepUntil.Std().Local().Format(time.TimeOnly), line)
	}
	s.ui.say("Ctrl-C ends them now")
	return nil
}

// loginLine is a command that logs in to an instance, its host key verified.
func (s *session) loginLine(ctx context.Context, instance string) (string, error) {
	in, err := s.fleet.Controller.Instance(ctx, instance)
	if err != nil {
		return "", err
	}
	host, port, key, err := loginOf(in)
	if err != nil {
		return "", err
	}
	login, err := s.fleet.Key.LoginKeyFile()
	if err != nil {
		return "", err
	}
	known := fmt.Sprintf("[%s]:%s %s\n", host, port, key)
	hosts := "known_hosts." + in.Name
	for name, content := range map[string]string{"login.key": login.Reveal(), hosts: known} {
		if err := os.WriteFile(s.folder.File(name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	words := []string{"ssh"}
	for _, file := range append(loginKeys(s.config, in.Cloud), s.folder.File("login.key")) {
		words = append(words, "-i", file)
	}
	words = append(words, "-o", "UserKnownHostsFile="+s.folder.File(hosts), "-p", port, in.Login.User+"@"+host)
	return commandWords(words), nil
}
