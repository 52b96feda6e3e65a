package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sudoer returns an instance whose login user is not root, with the test's own sudo.
func sudoer(t *testing.T, sudo string) (target Target, used func() int) {
	i, home, target := shellInstance(t)
	bin := t.TempDir()
	for name, script := range map[string]string{
		"id":   "[ -n \"$BY_SUDO\" ] && echo 0 || echo 1000",
		"sudo": "[ \"$1\" = -n ] || exit 9; shift; echo used >>" + filepath.Join(bin, "used") + "; " + sudo,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	shell := realShell(home)
	i.exec = func(command string, ch ssh.Channel) int {
		return shell("PATH="+bin+":$PATH; export PATH; "+command, ch)
	}
	return target, func() int {
		text, _ := os.ReadFile(filepath.Join(bin, "used"))
		return strings.Count(string(text), "used")
	}
}

// TestTheRunnersUser checks that the runner runs as root if attempts are isolated.
func TestTheRunnersUser(t *testing.T) {
	const works = `BY_SUDO=1 exec "$@"`
	t.Run("if attempts are isolated, sudo runs it as root", func(t *testing.T) {
		target, used := sudoer(t, works)
		target.Apart = true
		connected(t, target)
		if used() != 3 { // to look for it, to upload it, and to start it
			t.Errorf("sudo was used %d times", used())
		}
	})
	t.Run("otherwise sudo is not used", func(t *testing.T) {
		target, used := sudoer(t, works)
		connected(t, target)
		if used() != 0 {
			t.Errorf("sudo was used %d times", used())
		}
	})
	t.Run("if sudo wants a password, the error says so", func(t *testing.T) {
		target, _ := sudoer(t, "echo 'sudo: a password is required' >&2; exit 1")
		target.Apart = true
		if _, err := Connect(testContext(t), target); err == nil || !strings.Contains(err.Error(), "a password is required") {
			t.Errorf("got %v", err)
		}
	})
}
