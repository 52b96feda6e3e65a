package deadman

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// place stands for an instance: the switch's file, and a program that "powers off" by creating another file.
type place struct {
	t         *testing.T
	file, off string
	powerOff  string
}

func newPlace(t *testing.T) place {
	folder := t.TempDir()
	p := place{t, filepath.Join(folder, "switch"), filepath.Join(folder, "off"), filepath.Join(folder, "poweroff")}
	if err := os.WriteFile(p.powerOff, []byte("#!/bin/sh\n>"+p.off+"\nkill $PPID\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) holder() Switch { return Switch{file: p.file, powerOff: p.powerOff} }

// plant runs the script as an init command.
func (p place) plant(shell []string, after time.Duration) {
	p.t.Helper()
	cmd := exec.Command(shell[0], append(shell[1:], "-c", Script(after))...)
	cmd.Env = append(os.Environ(), FileVariable+"="+p.file, PowerOffVariable+"="+p.powerOff)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// plantAll plants the script in one place for each installed shell.
func plantAll(t *testing.T, after time.Duration) (places []place) {
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		p := newPlace(t)
		p.plant(shell, after)
		places = append(places, p)
	}
	return places
}

func (p place) isOff() bool { _, err := os.Stat(p.off); return err == nil }

func (p place) until(what string, is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestTheScript(t *testing.T) {
	t.Run("is short and contains its timeout", func(t *testing.T) {
		for after, want := range map[time.Duration]string{
			time.Hour:               "-lt 360 ]; do\nsleep 10\n",
			45 * time.Second:        "-lt 9 ]; do\nsleep 5\n",
			2 * time.Second:         "-lt 2 ]; do\nsleep 1\n",
			1500 * time.Millisecond: "-lt 2 ]; do\nsleep 1\n",
		} {
			if s := Script(after); len(s) > 1000 || !strings.Contains(s, want) || !strings.HasPrefix(s, "#!/bin/sh\n") {
				t.Errorf("%v, %d bytes: %s", after, len(s), s)
			}
		}
	})
	t.Run("powers off an instance that was never wanted", func(t *testing.T) {
		t.Parallel()
		for _, p := range plantAll(t, time.Second) {
			p.until("it is off", p.isOff)
		}
	})
	t.Run("leaves a wanted instance on, and powers it off once it is unwanted", func(t *testing.T) {
		t.Parallel()
		places := plantAll(t, time.Second)
		for range 25 {
			for _, p := range places {
				if err := p.holder().Hold(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond) // the script sleeps by the real clock
		}
		for _, p := range places {
			if p.isOff() {
				t.Error("it powered off while it was wanted")
			}
		}
		for _, p := range places {
			p.until("it is off", p.isOff)
		}
	})
	t.Run("powers off at once for a runner that lacks the rights", func(t *testing.T) {
		t.Parallel()
		places := plantAll(t, 20*time.Second)
		for _, p := range places {
			if err := p.holder().say(offWord); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range places {
			p.until("it is off", p.isOff)
		}
	})
	t.Run("exits if it cannot create its file", func(t *testing.T) {
		cmd := exec.Command("sh", "-c", Script(time.Second))
		cmd.Env = append(os.Environ(), FileVariable+"=/nowhere/at/all", PowerOffVariable+"=/bin/false")
		if err := cmd.Run(); err == nil {
			t.Error("it continues without its file")
		}
	})
}

func TestTheSwitch(t *testing.T) {
	t.Run("without a script is held without an error, and its file is not created", func(t *testing.T) {
		p := newPlace(t)
		if err := p.holder().Hold(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.file); err == nil {
			t.Error("the file was created")
		}
	})
	t.Run("returns an error if it cannot be held", func(t *testing.T) {
		p := newPlace(t)
		if err := os.Symlink(p.powerOff, p.file); err != nil {
			t.Fatal(err)
		}
		if err := p.holder().Hold(); err == nil {
			t.Error("it followed a link")
		}
	})
	t.Run("powers off again and again, and logs it, until it is cancelled", func(t *testing.T) {
		p := newPlace(t)
		p.powerOff = filepath.Join(t.TempDir(), "missing")
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		p.holder().PowerOff(ctx, func(format string, args ...any) {
			if said = append(said, format); len(said) == 5 {
				cancel()
			}
		})
		if len(said) < 5 {
			t.Errorf("it logged %q", said)
		}
	})
	t.Run("knows several ways to end a VM, or only the program that the instance names", func(t *testing.T) {
		if ways := (Switch{}).ways(); len(ways) < 4 {
			t.Errorf("%q", ways)
		}
		if ways := (Switch{powerOff: "/x"}).ways(); len(ways) != 1 || ways[0][0] != "/x" {
			t.Errorf("%q", ways)
		}
	})
}
