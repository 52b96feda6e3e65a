//go:build chaos || e2e

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// chaosInstance is one instance: a tree of processes with a real sshd, on its own loopback address. The cloud's lock
// guards everything that may change.
type chaosInstance struct {
	id, name, kind, zone string
	address              string
	tags                 map[string]string
	fate                 instanceFate

	created time.Time // when its bill begins
	ended   time.Time // when its bill ends; zero while it lives
	hidden  time.Time // lists do not show it until then
	stale   time.Time // lists show its old state until then
	shown   int       // how many lists have shown its old state
	told    bool      // it was told to end, rather than ending by itself

	folder string
	cmd    *exec.Cmd      // its first process
	alive  io.WriteCloser // closed when this process ends, which ends the instance
	buried chan struct{}  // closed when none of its processes is left
}

func (in *chaosInstance) lives() bool { return in.ended.IsZero() }

// sshdConfig gives each instance its own home and poweroff, although all of them share a host.
const sshdConfig = `ListenAddress %[1]s
HostKey %[2]s/host_key
AuthorizedKeysFile %[2]s/authorized_keys
PidFile %[2]s/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
SetEnv %[3]s
ForceCommand cd "$HOME" && exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
`

// boot creates the instance's folder and starts its processes.
func (in *chaosInstance) boot(hostKey, publicKey string, scripts []string) error {
	home, poweroff := filepath.Join(in.folder, "home"), filepath.Join(in.folder, "poweroff")
	environment := []string{"HOME=" + home, "PATH=" + searchPath(), "DROVER_SWITCH=" + filepath.Join(in.folder, "switch"), "DROVER_POWEROFF=" + poweroff}
	files := map[string]string{
		"host_key": hostKey, "authorized_keys": publicKey + "\n",
		"sshd_config": fmt.Sprintf(sshdConfig, in.address, in.folder, strings.Join(environment, " ")),
		"poweroff":    fmt.Sprintf("#!/bin/sh\nread -r pid <%s/pid && kill \"$pid\"\n", in.folder),
	}
	for i, script := range scripts {
		files[fmt.Sprintf("init-%d", i)] = script
	}
	err := os.MkdirAll(home, 0o700)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(in.folder, name), []byte(text), 0o700))
	}
	log, logErr := os.Create(filepath.Join(in.folder, "log"))
	if err := errors.Join(err, logErr); err != nil {
		return err
	}
	defer log.Close()
	in.cmd, in.buried = exec.Command(filepath.Join(binaries, "chaos-instance"), in.folder), make(chan struct{})
	in.cmd.Env, in.cmd.Stdout, in.cmd.Stderr = environment, log, log
	in.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if in.alive, err = in.cmd.StdinPipe(); err == nil {
		err = in.cmd.Start()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(in.folder, "pid"), fmt.Appendln(nil, in.cmd.Process.Pid), 0o600)
}

// kill ends every process of the instance, as a power cut would, and returns when none is left.
func (in *chaosInstance) kill() {
	in.cmd.Process.Signal(syscall.SIGCONT) // so that it reaps the others
	endBelow(in.cmd.Process.Pid)
	in.cmd.Process.Kill()
	<-in.buried
}

// hang stops every process of the instance: its connections stay open, and nothing answers.
func (in *chaosInstance) hang() {
	in.cmd.Process.Signal(syscall.SIGSTOP)
	stopBelow(in.cmd.Process.Pid)
}

// thaw resumes them, if they still exist.
func (in *chaosInstance) thaw() {
	if isClosed(in.buried) {
		return
	}
	for _, pid := range append(below(in.cmd.Process.Pid), in.cmd.Process.Pid) {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// changeHostKey gives the instance's sshd another host key, as if another instance had its address. Existing logins
// continue.
func (in *chaosInstance) changeHostKey() error {
	key := filepath.Join(in.folder, "other_key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		return fmt.Errorf("make a key: %w: %s", err, out)
	}
	if err := os.Rename(key, filepath.Join(in.folder, "host_key")); err != nil {
		return err
	}
	pid, err := os.ReadFile(filepath.Join(in.folder, "sshd.pid"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		return err
	}
	return syscall.Kill(n, syscall.SIGHUP) // sshd restarts
}
