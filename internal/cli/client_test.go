package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/daemon"
)

// noController clears every setting that names a controller.
func noController(t *testing.T) {
	for _, name := range []string{"DROVER_SERVER", "DROVER_API", "DROVER_TOKEN", "DROVER_CONFIG"} {
		t.Setenv(name, "")
	}
}

// covers D26
func TestFindingTheController(t *testing.T) {
	t.Run("names everything that is missing at once", func(t *testing.T) {
		noController(t)
		r := droverCommand(t, "jobs")
		r.want(t, 2, "", "no controller specified: use --server URL, DROVER_SERVER or -c FILE")
		r.want(t, 2, "", "no token specified: use --token file:PATH, DROVER_TOKEN")
	})
	t.Run("prefers flags to the environment", func(t *testing.T) {
		noController(t)
		t.Setenv("DROVER_SERVER", "https://one.example")
		t.Setenv("DROVER_TOKEN", "one")
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("two\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		a := &app{program: underTest(), server: "https://two.example", tokenFrom: "file:" + file}
		if at, err := a.findController(); err != nil || at.base != "https://two.example" || at.token.Reveal() != "two" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("prefers -c to the environment, whose token is for another controller", func(t *testing.T) {
		noController(t)
		t.Setenv("DROVER_SERVER", "https://one.example")
		t.Setenv("DROVER_TOKEN", "one")
		config := aConfiguration(t, "127.0.0.1:8420")
		droverCommand(t, "jobs", "-c", aConfiguration(t, "127.0.0.1:0")).want(t, 3, "", "the controller of fleet lab")
		a := &app{program: underTest(), config: config, configFlag: true}
		if at, err := a.findController(); err != nil || at.base != "http://127.0.0.1:8420" || at.token.Reveal() == "one" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("refuses a token on the command line", func(t *testing.T) {
		noController(t)
		droverCommand(t, "jobs", "--server", "http://127.0.0.1:1", "--token", "secret").want(t, 2, "", "--token does not accept the token itself")
	})
	t.Run("finds the controller on this host by its configuration, with its token", func(t *testing.T) {
		noController(t)
		a := &app{program: underTest(), config: aConfiguration(t, "127.0.0.1:8420")}
		at, err := a.findController()
		if err != nil || at.base != "http://127.0.0.1:8420" || at.token.Reveal() == "" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("finds a controller on port 0 at the address that it announced", func(t *testing.T) {
		noController(t)
		config := aConfiguration(t, "127.0.0.1:0")
		a := &app{program: underTest(), config: config}
		if _, err := a.findController(); drover.KindOf(err) != drover.KindUnreachable {
			t.Errorf("the error is %v", err)
		}
		folder := folderOf(t, config)
		if err := folder.Announce("127.0.0.1:4711"); err != nil {
			t.Fatal(err)
		}
		if at, err := a.findController(); err != nil || at.base != "http://127.0.0.1:4711" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("prefers the announced address to a changed configuration", func(t *testing.T) {
		noController(t)
		config := aConfiguration(t, "127.0.0.1:8421")
		folder := folderOf(t, config)
		if err := folder.Announce("127.0.0.1:8420"); err != nil {
			t.Fatal(err)
		}
		a := &app{program: underTest(), config: config}
		if at, err := a.findController(); err != nil || at.base != "http://127.0.0.1:8420" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("finds a controller whose configuration has become invalid", func(t *testing.T) {
		noController(t)
		file := aConfiguration(t, "127.0.0.1:8420")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			added string
			found bool
		}{{"hooks: {ready: ./missing.sh}\n", true}, {"pools: {web: {size: -1, colour: red}}\n", true}, {"url: nonsense\n", false}, {"pools: [\n", false}} {
			if err := os.WriteFile(file, append(text, c.added...), 0o600); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			a := &app{program: underTest(), err: &said, config: file}
			at, err := a.findController()
			if found := err == nil && at.base == "http://127.0.0.1:8420" && at.token.Reveal() != "" && strings.Contains(said.String(), "is invalid"); found != c.found {
				t.Errorf("with %s it is found at %v, %v: %s", c.added, at, err, &said)
			}
		}
	})
	t.Run("reads a token from the file that the environment names", func(t *testing.T) {
		noController(t)
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("two\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("DROVER_TOKEN", "file:"+file)
		a := &app{program: underTest(), server: "https://two.example"}
		if at, err := a.findController(); err != nil || at.token.Reveal() != "two" {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("sends the local token to no other controller", func(t *testing.T) {
		noController(t)
		a := &app{program: underTest(), config: aConfiguration(t, "127.0.0.1:8420"), server: "https://other.example"}
		if at, err := a.findController(); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("%v, %v", at, err)
		}
	})
	t.Run("reports that the controller has never run on this host", func(t *testing.T) {
		noController(t)
		config := aConfiguration(t, "127.0.0.1:8420")
		if err := os.Remove(filepath.Join(filepath.Dir(config), "drover.d", "token")); err != nil {
			t.Fatal(err)
		}
		droverCommand(t, "jobs", "-c", config).want(t, 3, "", "drover serve -c "+config+" starts it")
	})
}

// aConfiguration returns a configuration file whose daemon has run with this listen address.
func aConfiguration(t *testing.T, listen string) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "drover.yaml")
	text := "version: 1\nfleet: lab\nlisten: " + listen + "\nstate: sqlite:drover.db\nclouds:\n  here: {driver: local}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := folderOf(t, file)
	if err := daemon.Make(); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.MakeToken(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRateLimit(t *testing.T) {
	limit := drover.Errorf(drover.KindRateLimit, "too many")
	t.Run("repeats a call when the controller allows it", func(t *testing.T) {
		limit.RetryAt = drover.TimeOf(time.Now().Add(time.Millisecond))
		f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobRunning)}, faults: []error{limit, limit}}
		f.serve(t)
		if r := droverCommand(t, "cancel", "1"); r.code != 0 || r.err != "" || f.asked["Cancel"] != 3 {
			t.Errorf("after %d calls: %+v", f.asked["Cancel"], r)
		}
	})
	t.Run("does not wait for hours or after other errors", func(t *testing.T) {
		limit.RetryAt = drover.TimeOf(time.Now().Add(time.Hour))
		for _, fault := range []error{limit, drover.Errorf(drover.KindTransient, "other")} {
			f := &fakeController{jobs: []drover.Job{aJob(1, "a", drover.JobRunning)}, faults: []error{fault}}
			f.serve(t)
			droverCommand(t, "cancel", "1").want(t, 3, "", fault.Error())
		}
	})
}

// folderOf returns the folder of a configuration's daemon.
func folderOf(t *testing.T, file string) daemon.Folder {
	t.Helper()
	_, folder, err := (&app{program: underTest(), config: file}).daemon()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
