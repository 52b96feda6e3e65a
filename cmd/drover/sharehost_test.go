package main

import (
	"strings"
	"testing"
)

// TestASecondUserOnTheControllersHost wants jobs that can do whatever the controller can to be one user's, unless the configuration says otherwise.
func TestASecondUserOnTheControllersHost(t *testing.T) {
	t.Parallel()
	token := func(p *daemonPlace, user, role string) *process {
		return p.run("token", "create", "-c", "drover.yaml", "--user", user, "--role", role)
	}
	t.Run("gets no token", func(t *testing.T) {
		p := newDaemonPlace(t, "", "")
		if said := p.process.err.String(); !strings.Contains(said, "they can do whatever it can") {
			t.Errorf("serve does not warn: %s", said)
		}
		for _, role := range []string{"submit", "view", "admin"} {
			if r := token(p, "ada", role); r.code() != 0 {
				t.Errorf("the first user gets no token for %s: %s", role, r.err.tail())
			}
		}
		if r := token(p, "bob", "submit"); r.code() != 2 || !strings.Contains(r.err.String(), "bob's jobs could do whatever ada can") || !strings.Contains(r.err.String(), "trusted: true") {
			t.Errorf("exit code %d: %s", r.code(), r.err.String())
		}
		if r := token(p, "bob", "view"); r.code() != 0 {
			t.Errorf("one who runs nothing gets none: %s", r.err.tail())
		}
	})
	t.Run("gets one where the cloud's users are trusted", func(t *testing.T) {
		p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
		p.write("drover.yaml", strings.Replace(p.configuration("", ""), "driver: local", "driver: local\n    trusted: true", 1))
		t.Cleanup(p.end)
		p.serve()
		for _, user := range []string{"ada", "bob"} {
			if r := token(p, user, "submit"); r.code() != 0 {
				t.Errorf("%s gets no token: %s", user, r.err.tail())
			}
		}
	})
}
