//go:build e2e

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
)

// TestASecondUserOnTheControllersHost checks that jobs on the controller's host, which have all its rights, must belong
// to one user, unless the configuration trusts more.
func TestASecondUserOnTheControllersHost(t *testing.T) {
	t.Parallel()
	token := func(p *daemonPlace, user, role string) *process {
		return p.run("token", "create", "-c", "drover.yaml", "--user", user, "--role", role)
	}
	t.Run("gets no token", func(t *testing.T) {
		p := newDaemonPlace(t, "", "")
		if said := p.process.err.String(); !strings.Contains(said, "can do whatever the controller can") {
			t.Errorf("serve does not warn: %s", said)
		}
		for _, role := range []string{"submit", "view", "admin"} {
			if r := token(p, "ada", role); r.code() != 0 {
				t.Errorf("the first user gets no token with role %s: %s", role, r.err.tail())
			}
		}
		if r := token(p, "bob", "submit"); r.code() != 2 || !strings.Contains(r.err.String(), "bob's jobs could do whatever ada can") || !strings.Contains(r.err.String(), "trusted: true") {
			t.Errorf("exit code %d: %s", r.code(), r.err.String())
		}
		if r := token(p, "bob", "view"); r.code() != 0 {
			t.Errorf("a second user who runs nothing gets no token: %s", r.err.tail())
		}
	})
	t.Run("gets a token and separate instances if the cloud trusts its users", func(t *testing.T) {
		p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
		p.write("drover.yaml", strings.Replace(p.configuration("", ""), "driver: local", "driver: local\n    trusted: true", 1))
		t.Cleanup(p.end)
		p.serve()
		for _, user := range []string{"ada", "bob"} {
			if r := token(p, user, "submit"); r.code() != 0 {
				t.Errorf("%s gets no token: %s", user, r.err.tail())
			} else {
				p.write(user+".token", r.out.String())
			}
		}
		p.write("batch.yaml", "jobs: [{name: a, array: 3, command: [sleep, '0.2'], resources: {vcpus: 0.25, memory: 32Mi, disk: 1Mi}}]\n")
		var both []*process
		for _, user := range []string{"ada", "bob"} {
			both = append(both, p.start("submit", "--server", "http://"+p.address, "--token", "file:"+user+".token", "--wait", "batch.yaml"))
		}
		for _, r := range both {
			if code := r.wait(time.Minute); code != 0 {
				t.Errorf("exit code %d: %s", code, r.err.tail())
			}
		}
		if users := strings.Fields(p.drover("instances", "-o", "wide")); !slices.Contains(users, "ada") || !slices.Contains(users, "bob") {
			t.Errorf("not every user has an instance: %q", users)
		}
		on := map[string]string{}
		for _, j := range read[[]drover.Job](p, "jobs", "--elements") {
			for _, a := range read[drover.Job](p, "jobs", j.ID.String()).Attempts {
				if user := on[a.Instance]; user != "" && user != j.User {
					t.Errorf("%s and %s both had jobs on %s", user, j.User, a.Instance)
				}
				on[a.Instance] = j.User
			}
		}
		if len(on) < 2 {
			t.Errorf("all jobs ran on %v", on)
		}
	})
}
