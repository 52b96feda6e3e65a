package deadman

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drover/internal/backoff"
)

// Switch is the runner's end of the switch.
type Switch struct {
	file     string
	powerOff string // the one program that ends the instance; empty: a VM's usual commands
}

// Find returns the switch of the instance that this process runs on. It does not check whether a script was planted.
func Find() Switch {
	s := Switch{file: os.Getenv(FileVariable), powerOff: os.Getenv(PowerOffVariable)}
	if s.file == "" {
		s.file = defaultFile
	}
	return s
}

// Hold reports to the script that the instance is wanted. It is no error if no script was planted.
func (s Switch) Hold() error { return s.say(time.Now().UTC().Format("2006-01-02T15:04:05.000000000")) }

// Keep lets only this process's user write to the switch, for instances that run untrusted jobs. The script recreates
// the file at each boot, so Keep must be called again.
func (s Switch) Keep() error {
	f, err := os.OpenFile(s.file, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Close())
	}
	if err != nil {
		return fmt.Errorf("setting the dead-man switch: %w", err)
	}
	return nil
}

// say replaces the first line of the file. It never makes the file, waits for a reader or follows a link.
func (s Switch) say(line string) error {
	f, err := os.OpenFile(s.file, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("updating the dead-man switch: %w", err)
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// patience is how long one way of powering off has to take effect.
const patience = 20 * time.Second

// PowerOff powers the instance off and logs what it does. It tries one way after another, repeatedly, and returns only
// when ctx ends: otherwise this process ends with the instance.
func (s Switch) PowerOff(ctx context.Context, logf func(format string, args ...any)) {
	for ctx.Err() == nil {
		if err := s.say(offWord); err != nil {
			logf("%v", err)
		}
		for _, way := range s.ways() {
			logf("powering off: %s", strings.Join(way, " "))
			if err := try(ctx, way); err != nil {
				logf("powering off: %v", err)
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// ways returns the commands that may end the instance, gentlest first.
func (s Switch) ways() [][]string {
	if s.powerOff != "" {
		return [][]string{{s.powerOff}}
	}
	ways := [][]string{{"poweroff"}, {"shutdown", "-P", "now"}, {"poweroff", "-f"}, {"halt", "-f", "-p"}}
	if os.Geteuid() == 0 {
		return append(ways, []string{"sh", "-c", "echo o >/proc/sysrq-trigger"})
	}
	for i, way := range ways {
		ways[i] = append([]string{"sudo", "-n"}, way...)
	}
	return ways
}

// try runs a command that should power the instance off, and waits for its effect.
func try(ctx context.Context, way []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path, err := find(way[0])
	if err == nil {
		cmd := exec.CommandContext(ctx, path, way[1:]...)
		cmd.WaitDelay = time.Second
		if said, failed := cmd.CombinedOutput(); failed != nil {
			err = fmt.Errorf("%s: %w: %.200q", path, failed, said)
		}
	}
	if err != nil {
		// Pause before the next way: an instance that cannot power off must not keep a CPU busy.
		_ = backoff.For(ctx, time.Second)
		return err
	}
	_ = backoff.For(ctx, patience)
	return fmt.Errorf("%s had no effect", path)
}

// find searches PATH and the system administration folders, which are not in every user's PATH.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, folder := range []string{"/usr/sbin", "/sbin"} {
		if err == nil {
			break
		}
		path, err = exec.LookPath(filepath.Join(folder, name))
	}
	return path, err
}
