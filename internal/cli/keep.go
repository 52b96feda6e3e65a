package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"drover"
)

// tellKept prints how to log in to the instances of failed jobs that are kept for inspection.
func (s *session) tellKept(ctx context.Context) error {
	if s.interrupted || s.plan.Limits.Keep == 0 && s.config.Instances.KeepBroken == 0 {
		return nil
	}
	kept := false
	for in, err := range allInstances(ctx, s.svc, drover.InstanceFilter{}) {
		if err != nil {
			return err
		}
		until, err := s.keptUntil(ctx, in.Name)
		if err != nil || until == 0 {
			continue // it is gone by now
		}
		line, err := s.loginLine(ctx, in.Name)
		if err != nil {
			line = "cannot tell how to log in: " + err.Error()
		}
		kept = true
		s.ui.say("instance %s is kept until %s for inspection:\n    %s", in.Name, until.Std().Local().Format(time.TimeOnly), line)
	}
	if kept {
		s.ui.say("Ctrl-C destroys them now")
	}
	return nil
}

// keptUntil returns how long an idle instance of a closed fleet is kept; 0 if it is not kept.
func (s *session) keptUntil(ctx context.Context, instance string) (until drover.Time, err error) {
	list, err := s.svc.Explain(ctx, instance)
	for _, x := range list {
		for _, why := range x.Reasons {
			if why.Code == drover.ReasonIdle && why.Until > drover.TimeOf(time.Now()) {
				until = why.Until
			}
		}
	}
	return until, err
}

// loginLine returns a command that logs in to an instance and verifies its host key.
func (s *session) loginLine(ctx context.Context, instance string) (string, error) {
	in, err := s.svc.Instance(ctx, instance)
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
