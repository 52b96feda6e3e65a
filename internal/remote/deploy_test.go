package remote

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// scriptRunner is a runner as a shell script: it sends a Hello and then nothing.
const scriptRunner = `#!/bin/sh
echo '{"hello":{"version":1,"epoch":1,"fleet":"test","instance":"i-1"}}'
cat >/dev/null
`

// shellInstance returns an instance with a real shell, its home, and its Target.
func shellInstance(t *testing.T) (*fakeInstance, string, Target) {
	home := t.TempDir()
	i := newFakeInstance(t, "i-1")
	i.exec = realShell(home)
	target := target(i, "i-1")
	target.Runner = runnerOf([]byte(scriptRunner))
	return i, home, target
}

func connected(t *testing.T, target Target) {
	t.Helper()
	c, err := Connect(testContext(t), target)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// uploads returns how often a runner was uploaded.
func uploads(i *fakeInstance) (n int) {
	for _, c := range i.commands() {
		if strings.Contains(c, "umask") {
			n++
		}
	}
	return n
}

// covers D7
func TestDeploy(t *testing.T) {
	t.Run("a missing runner is sent, private to its owner, and no other file is left", func(t *testing.T) {
		i, home, target := shellInstance(t)
		connected(t, target)
		path := filepath.Join(home, ".drover", target.Runner.name())
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o700 || uploads(i) != 1 {
			t.Fatalf("%v, %v, %d uploads", info, err, uploads(i))
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	})
	t.Run("a runner that is present is not sent again", func(t *testing.T) {
		i, _, target := shellInstance(t)
		connected(t, target)
		connected(t, target)
		if uploads(i) != 1 {
			t.Errorf("%d uploads", uploads(i))
		}
	})
	for what, spoil := range map[string]func(path string) error{
		"altered":        func(path string) error { return os.WriteFile(path, []byte(strings.ToUpper(scriptRunner)), 0o700) },
		"cut short":      func(path string) error { return os.Truncate(path, 10) },
		"not executable": func(path string) error { return os.Chmod(path, 0o600) },
	} {
		t.Run("a runner that is "+what+" is replaced before it is used", func(t *testing.T) {
			i, home, target := shellInstance(t)
			connected(t, target)
			path := filepath.Join(home, ".drover", target.Runner.name())
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			connected(t, target)
			if got, err := os.ReadFile(path); err != nil || string(got) != scriptRunner || uploads(i) != 2 {
				t.Errorf("%q, %v, %d uploads", got, err, uploads(i))
			}
		})
	}
	t.Run("without sha256sum the contents are still compared", func(t *testing.T) {
		i, home, target := shellInstance(t)
		bin := t.TempDir()
		for _, name := range []string{"cat", "chmod", "mkdir", "mv", "rm"} {
			if err := os.Symlink("/bin/"+name, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/usr/bin/cksum", filepath.Join(bin, "cksum")); err != nil {
			t.Fatal(err)
		}
		shell := realShell(home)
		i.exec = func(command string, ch ssh.Channel) int { return shell("PATH="+bin+"; "+command, ch) }
		connected(t, target)
		connected(t, target)
		if uploads(i) != 1 {
			t.Errorf("%d uploads of a runner that is present", uploads(i))
		}
		altered := strings.Replace(scriptRunner, "cat", "tac", 1) // of the same size
		if err := os.WriteFile(filepath.Join(home, ".drover", target.Runner.name()), []byte(altered), 0o700); err != nil {
			t.Fatal(err)
		}
		connected(t, target)
		if uploads(i) != 2 {
			t.Errorf("%d uploads", uploads(i))
		}
	})
	t.Run("several controllers at once do not interfere", func(t *testing.T) {
		_, home, target := shellInstance(t)
		target.RunnerDir = "a folder/it's nested"
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if c, err := Connect(testContext(t), target); err != nil {
					t.Error(err)
				} else {
					c.Close()
				}
			})
		}
		all.Wait()
		if entries, err := os.ReadDir(filepath.Join(home, target.RunnerDir)); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	})
	t.Run("a runner that arrives altered is not put in place", func(t *testing.T) {
		_, home, target := shellInstance(t)
		target.Runner.Open = func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(strings.ToUpper(scriptRunner))), nil
		}
		refused(t, target, drover.KindTransient, "deploying the runner: exited with 1: the received file differs from the sent one")
		if entries, err := os.ReadDir(filepath.Join(home, ".drover")); err != nil || len(entries) != 0 {
			t.Errorf("%v, %v", entries, err)
		}
	})
	for what, content := range map[string]string{"shorter": "x", "longer": scriptRunner + "x"} {
		t.Run("a local copy that is "+what+" than it should be is an error", func(t *testing.T) {
			_, _, target := shellInstance(t)
			target.Runner.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
			refused(t, target, drover.KindTransient, "wrong size")
		})
	}
	t.Run("a runner that cannot be opened is an error", func(t *testing.T) {
		_, _, target := shellInstance(t)
		target.Runner.Open = func() (io.ReadCloser, error) { return nil, errors.New("no such file") }
		refused(t, target, drover.KindTransient, "deploying the runner: no such file")
	})
	t.Run("a folder that cannot be created is an error", func(t *testing.T) {
		_, home, target := shellInstance(t)
		if err := os.WriteFile(filepath.Join(home, ".drover"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, target, drover.KindTransient, "deploying the runner: exited with 1: mkdir:")
	})
}

// covers D3
func TestBootProbe(t *testing.T) {
	t.Run("a failing probe's error has its exit code and last lines, and the runner is still deployed", func(t *testing.T) {
		i, _, target := shellInstance(t)
		target.BootProbe = "echo; echo one; echo two; echo three; echo four >&2; exit 7"
		refused(t, target, drover.KindTransient, "boot probe exited with 7: one; two; three four")
		if uploads(i) != 1 {
			t.Errorf("%d uploads", uploads(i))
		}
	})
	t.Run("a probe that passes lets Connect continue", func(t *testing.T) {
		_, _, target := shellInstance(t)
		target.BootProbe = "cat; test 'a b' = \"a b\""
		connected(t, target)
	})
	t.Run("a killed probe's error names the signal", func(t *testing.T) {
		f := &fakeRunner{}
		i, target := fake(t, nil)
		i.exec = func(command string, ch ssh.Channel) int {
			if !strings.Contains(command, "probe") {
				return f.exec(command, ch)
			}
			ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal     string
				Core       bool
				Text, Lang string
			}{Signal: "KILL"}))
			ch.Close()
			return 0
		}
		target.BootProbe = "probe"
		refused(t, target, drover.KindTransient, "boot probe killed by SIGKILL")
	})
}

// FuzzWhatAnInstanceSends checks that whatever an instance sends is parsed without panicking, and that no unprintable
// text reaches people.
func FuzzWhatAnInstanceSends(f *testing.F) {
	f.Add("Welcome!\n" + presentWord + "\n" + `{"hello":{"version":1,"fleet":"test","instance":"i-1"}}` + "\n" + `{"exited":{"id":"1/1","exit":{}}}` + "\n")
	f.Add(absentWord + "\n")
	f.Add(presentWord + "\n{\"hello\":{\"version\":1,\"error\":\"\x1b[2J\"}}\n")
	f.Add(presentWord + "\n{\"hello\":{\"version\":1,\"error\":\" \"}}\n")
	f.Add(presentWord + "\n{}\n{\"missing\":{\"id\":\"1/1\",\"hashes\":[\"\"]},\"pong\":{\"n\":1}}\n")
	f.Add(presentWord + "\n" + `{"hello":{"version":1,"fleet":"test","instance":"i-1","notice":{"cause":"\u001b","deadline":-1},"ailing":{"text":"x\u0000"},"heard":"2027-01-02T03:04:05Z"}}` + "\n" +
		`{"notice":{"cause":"\u001b[2J","deadline":"0001-01-01T00:00:00Z"}}` + "\n" + `{"ailing":{"text":"\r"}}` + "\n" + `{"notice":{}}` + "\n")
	f.Add(presentWord + "\n" + `{"hello":{"version":1,"fleet":"test","instance":"i-1","attempts":[{},{"id":"1/1"}]}}` + "\n" + `{"exited":{}}` + "\n" + `{"exited":{"id":null}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		in := bufio.NewReaderSize(strings.NewReader(text), 4096)
		present, err := readVerdict(in)
		if err != nil || !present {
			return
		}
		lines := wire.NewConn(in, io.Discard)
		hello, err := readHello(lines)
		if err != nil {
			return
		}
		if err := judgeHello(wire.Hello{Fleet: "test", Instance: "i-1"}, hello); err != nil {
			if err.Error() != printable(err.Error()) && len(err.Error()) < 400 {
				t.Errorf("unprintable: %q", err)
			}
			return
		}
		c := &Conn{lines: lines, hello: hello, pongs: make(chan struct{}, 1), session: &session{}}
		critic := critic{t: t}
		for _, a := range hello.Attempts {
			critic.Exited(wire.Exited{ID: a.ID})
		}
		critic.Ailing(c.Ailing())
		if n := c.Notice(); n != nil {
			critic.Notice(*n)
		}
		c.read(critic)
	})
}

// critic is a Handler that checks that every text is safe to show.
type critic struct {
	deaf
	t *testing.T
}

func (c critic) Exited(m wire.Exited) {
	if m.ID == (drover.AttemptID{}) {
		c.t.Error("an attempt without an id has ended")
	}
}

func (c critic) Log(line string)        { c.wants(line) }
func (c critic) Ailing(text string)     { c.wants(text) }
func (c critic) Notice(n drover.Notice) { c.wants(n.Cause) }

func (c critic) wants(text string) {
	if text != printable(text) {
		c.t.Errorf("unprintable: %q", text)
	}
}

// deaf is a Handler that does nothing.
type deaf struct{}

func (deaf) Exited(wire.Exited)   {}
func (deaf) API(wire.API)         {}
func (deaf) Log(string)           {}
func (deaf) Notice(drover.Notice) {}
func (deaf) Ailing(string)        {}
