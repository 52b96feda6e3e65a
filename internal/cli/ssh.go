package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/remote"
)

func (a *app) sshCommand() *cobra.Command {
	cmd := unformatted("ssh prints the output", &cobra.Command{
		Use:   "ssh INSTANCE [-- CMD ARG…]",
		Short: "Log in to an instance or run a command there",
		Long: `Log in to an instance with ssh(1), or run a command there. The instance must prove its identity;
your agent is not forwarded. On the controller's own host, with -c, the fleet's key is used;
elsewhere, your own keys.

A single argument is a command line for the instance's shell; several are a command and its arguments.`,
		Example: "  drover ssh 3\n  drover ssh 3 -- uptime\n  drover ssh 3 -- 'ps aux | head'",
		Args:    wantArgs(1, -1, "an INSTANCE"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			in, err := svc.Instance(ctx, args[0])
			if err != nil {
				return err
			}
			return a.ssh(in, args[1:])
		}),
	})
	cmd.ValidArgsFunction = a.completeInstances
	return cmd
}

// ssh runs ssh(1) for an instance, with its files in a temporary folder.
func (a *app) ssh(in drover.Instance, command []string) error {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "ssh is not installed on this host").WithHint("install the OpenSSH client")
	}
	folder, err := os.MkdirTemp("", "drover-ssh-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	args, err := a.sshArgs(in, folder)
	if err != nil {
		return err
	}
	return runHere(program, append(args, remoteCommand(command)...))
}

// sshArgs returns the arguments of ssh(1). The known hosts list the instance by name, so its address does not matter
// there.
func (a *app) sshArgs(in drover.Instance, folder string) ([]string, error) {
	host, port, key, err := loginOf(in)
	if err != nil {
		return nil, err
	}
	known := filepath.Join(folder, "known_hosts")
	if err := os.WriteFile(known, []byte(in.Name+" "+key+"\n"), 0o600); err != nil {
		return nil, err
	}
	args := []string{"-a", "-x", "-p", port, "-l", in.Login.User}
	for _, option := range []string{
		"StrictHostKeyChecking=yes", `UserKnownHostsFile="` + known + `"`, "GlobalKnownHostsFile=/dev/null", "KnownHostsCommand=none",
		"HostKeyAlias=" + in.Name, "CheckHostIP=no", "UpdateHostKeys=no", "VerifyHostKeyDNS=no", "ControlPath=none", "LogLevel=ERROR",
	} {
		args = append(args, "-o", option)
	}
	logins, err := a.fleetLogins(in.Cloud, folder)
	if err != nil {
		return nil, err
	}
	if len(logins) > 0 {
		args = append(args, "-o", "IdentitiesOnly=yes")
	}
	for _, login := range logins {
		args = append(args, "-i", login)
	}
	return append(args, "--", host), nil
}

// loginOf returns where to log in to an instance and the key that it must prove, in a form that ssh(1) cannot misread.
func loginOf(in drover.Instance) (host, port, key string, err error) {
	refused := func(why string) error {
		return drover.Errorf(drover.KindConflict, "cannot log in to instance %s: %s", in.Name, why).WithHint("drover instances %s shows its state", in.Name)
	}
	if in.Login == nil || in.Login.Address == "" {
		return "", "", "", refused("its address is not known; it is " + string(in.State))
	}
	words := strings.Fields(in.Login.HostKey)
	if len(words) < 2 {
		return "", "", "", refused("its host key is not known, so its identity cannot be verified")
	}
	host, port, err = net.SplitHostPort(in.Login.Address)
	if err != nil || host == "" || strings.HasPrefix(host, "-") || in.Login.User == "" {
		return "", "", "", refused("its address is not valid: " + in.Login.User + "@" + in.Login.Address)
	}
	if strings.ContainsFunc(in.Name, func(r rune) bool { return r <= ' ' || strings.ContainsRune("*?!,#|@%", r) }) {
		return "", "", "", refused("its name is not valid for ssh")
	}
	return host, port, words[0] + " " + words[1], nil
}

// fleetLogins returns the key files that log in to a cloud's instances, if the configuration in force belongs to a
// controller on this host: those that the configuration names, and the fleet's own key, which fleetLogins writes to the
// folder. Otherwise the user's ssh offers its own keys.
func (a *app) fleetLogins(cloud, folder string) ([]string, error) {
	if a.config == "" {
		fmt.Fprintln(a.err, "logging in with your own keys; the fleet's key is only used on the controller's host, with -c FILE")
		return nil, nil
	}
	c, daemon, err := a.daemon()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(daemon.File("fleet.key")); err != nil {
		fmt.Fprintf(a.err, "logging in with your own keys, because the fleet's key cannot be read: %s\n", drover.Sanitize(err.Error()))
		return nil, nil
	}
	key, err := remote.LoadOrCreateFleetKey(daemon.File("fleet.key"))
	if err != nil {
		return nil, err
	}
	login, err := key.LoginKeyFile()
	if err != nil {
		return nil, err
	}
	own := filepath.Join(folder, "login.key")
	return append(loginKeys(c, cloud), own), os.WriteFile(own, []byte(login.Reveal()), 0o600)
}

// loginKeys returns the files of the keys that a configuration names for a cloud's instances.
func loginKeys(c *config.Config, cloud string) []string {
	if cl := c.Cloud(cloud); cl != nil {
		return daemon.Paths(cl.SSH.Keys)
	}
	return nil
}

// remoteCommand returns the command for the instance's shell.
func remoteCommand(command []string) []string {
	if len(command) < 2 {
		return command
	}
	return []string{commandWords(command)}
}

// runHere runs a program on this terminal and exits with its code. Ctrl-C goes to the program.
func runHere(program string, args []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT)
	defer signal.Stop(signals)
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case !errors.As(err, &ended):
		return err
	case ended.Sys().(syscall.WaitStatus).Signaled():
		return exit(128 + int(ended.Sys().(syscall.WaitStatus).Signal()))
	}
	return exit(ended.ExitCode())
}
