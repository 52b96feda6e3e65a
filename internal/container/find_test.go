package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install makes the scripts the only programs in PATH, in place of the clients.
func install(t *testing.T, scripts map[string]string) {
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestFind(t *testing.T) {
	const (
		docker   = `echo '["name=seccomp,profile=default"]'`
		rootless = `echo '["name=seccomp,profile=default","name=rootless"]'`
		podman   = `echo 4.3.1`
		down     = `echo 'Cannot connect to the Docker daemon' >&2; exit 1`
	)
	for name, c := range map[string]struct {
		clients map[string]string
		runtime string
		root    bool
	}{
		"docker is preferred":                             {map[string]string{"docker": docker, "podman": podman}, "docker", os.Getuid() == 0},
		"the user of rootless docker is root":             {map[string]string{"docker": rootless}, "docker", true},
		"podman is found if docker's daemon does not run": {map[string]string{"docker": down, "podman": podman}, "podman", true},
		"podman installed as docker is podman":            {map[string]string{"docker": podman, "podman": podman}, "podman", true},
		"podman is found without docker":                  {map[string]string{"podman": podman}, "podman", true},
	} {
		t.Run(name, func(t *testing.T) {
			install(t, c.clients)
			r, user, err := Find(t.Context(), Names()...)
			if err != nil || r.Name() != c.runtime || (user == RootUser) != c.root {
				t.Errorf("got %v as %s, %v", r, user, err)
			}
		})
	}
	t.Run("if none works, the error says why for each", func(t *testing.T) {
		install(t, map[string]string{"docker": down})
		_, _, err := Find(t.Context(), Names()...)
		for _, want := range []string{"docker: Cannot connect to the Docker daemon", "podman: it is not installed"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
	})
	t.Run("an unknown runtime is refused", func(t *testing.T) {
		if _, _, err := Find(t.Context(), "--help"); err == nil {
			t.Error("it was found")
		}
	})
}
