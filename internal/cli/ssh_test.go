package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover"
)

// fakeSSH puts first in the PATH an ssh that prints its arguments and the known hosts, and exits with 7.
func fakeSSH(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	script := "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; case $a in UserKnownHostsFile=*) f=${a#*=\\\"}; cat \"${f%\\\"}\";; esac; done\nexit 7\n"
	if err := os.WriteFile(filepath.Join(folder, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

func TestSSHCommand(t *testing.T) {
	in := drover.Instance{ID: 3, Name: "lab-x", State: drover.InstanceIdle, Login: &drover.Login{Address: "127.0.0.1:2222", User: "ada", HostKey: "ssh-ed25519 AAAA comment"}}
	t.Run("pins the instance's host key, forwards no agent, and exits with ssh's code", func(t *testing.T) {
		fakeSSH(t)
		f := &fakeController{instances: []drover.Instance{in}}
		f.serve(t)
		t.Setenv("TMPDIR", t.TempDir())
		// The program writes to this process's standard output, as it must for a terminal.
		out := captured(t, func() {
			droverCommand(t, "ssh", "3", "--", "echo", "a b").want(t, 7, "", "logging in with your own keys")
		})
		for _, want := range []string{"StrictHostKeyChecking=yes\n", "lab-x ssh-ed25519 AAAA\n", "HostKeyAlias=lab-x\n", "-a\n", "\n--\n127.0.0.1\necho 'a b'\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
			t.Errorf("files left behind: %v, %v", left, err)
		}
	})
	for name, login := range map[string]*drover.Login{
		"its address is not known":  nil,
		"its host key is not known": {Address: "127.0.0.1:22", User: "ada"},
		"its address is not valid":  {Address: "-oProxyCommand=x:22", User: "ada", HostKey: "ssh-ed25519 AAAA"},
	} {
		t.Run("is refused when "+name, func(t *testing.T) {
			fakeSSH(t)
			other := in
			other.Login = login
			f := &fakeController{instances: []drover.Instance{other}}
			f.serve(t)
			droverCommand(t, "ssh", "lab-x").want(t, 2, "", name)
		})
	}
	t.Run("reports a missing ssh", func(t *testing.T) {
		f := &fakeController{instances: []drover.Instance{in}}
		f.serve(t)
		t.Setenv("PATH", t.TempDir())
		droverCommand(t, "ssh", "lab-x").want(t, 2, "", "ssh is not installed on this host")
	})
}

// captured returns what this process writes to its standard output while do runs.
func captured(t *testing.T, do func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	before := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = before }()
	do()
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
