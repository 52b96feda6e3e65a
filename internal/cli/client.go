package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/httpapi"
)

// whereabouts is where a controller is, and the token for it.
type whereabouts struct {
	base  string
	token drover.Secret
}

// service returns the controller that the command line, the environment or the configuration names.
func (a *app) service(context.Context) (drover.Service, error) {
	at, err := a.findController()
	if err != nil {
		return nil, err
	}
	client, err := httpapi.NewClient(at.base, at.token, nil)
	if err != nil {
		return nil, err
	}
	client.Repeat = a.patiently
	return client, nil
}

// findController reports everything that is missing at once.
//
// The local token of a configuration is sent only to the controller of that configuration.
func (a *app) findController() (at whereabouts, err error) {
	at.base = a.givenServer()
	if at.token, err = a.givenToken(); err != nil {
		return at, err
	}
	if at.base == "" && a.config != "" {
		return a.localController(at.token)
	}
	var missing []string
	if at.base == "" {
		missing = append(missing, "no controller specified: use --server URL, DROVER_SERVER or -c FILE")
	}
	if at.token.Reveal() == "" {
		missing = append(missing, "no token specified: use --token file:PATH, DROVER_TOKEN or, for the controller on this host, -c FILE")
	}
	if missing != nil {
		return at, drover.Errorf(drover.KindInvalid, "%s", strings.Join(missing, "\n        ")).
			WithHint("drover serve -c FILE starts a controller; drover run does not need one")
	}
	return at, nil
}

// givenServer returns the controller's URL from the command line or the environment; empty if neither has one.
func (a *app) givenServer() string {
	if a.server != "" || a.configFlag {
		return a.server
	}
	return serverOfEnvironment()
}

func serverOfEnvironment() string { return cmp.Or(os.Getenv("DROVER_SERVER"), os.Getenv("DROVER_API")) }

// givenToken returns the token from the command line or the environment; empty if neither has one.
func (a *app) givenToken() (drover.Secret, error) {
	given := os.Getenv("DROVER_TOKEN")
	if a.configFlag && a.server == "" && serverOfEnvironment() != "" {
		given = "" // it is for the controller that -c overrides
	}
	switch {
	case a.tokenFrom != "":
		return tokenFrom(a.tokenFrom)
	case strings.HasPrefix(given, "file:"):
		return tokenFrom(given)
	}
	return drover.NewSecret(given), nil
}

// localController returns the controller that the configuration in force describes. The file may have become invalid
// while the controller runs.
func (a *app) localController(token drover.Secret) (at whereabouts, err error) {
	c, folder, err := a.daemon()
	if err != nil {
		var ran bool
		if c, folder, ran = a.formerDaemon(); !ran {
			return at, err
		}
		fmt.Fprintf(a.err, "%s is invalid; a running controller keeps the earlier version; drover config check shows the errors\n", a.config)
	}
	if token.Reveal() == "" {
		if token, err = folder.Token(); err != nil {
			return at, a.noLocal(c.Fleet, err)
		}
	}
	at.token = token
	if at.base, err = localBase(c.Listen, c.URL, folder); err != nil {
		return at, a.noLocal(c.Fleet, err)
	}
	return at, nil
}

// daemon returns the configuration in force, and its daemon's folder.
func (a *app) daemon() (*config.Config, daemon.Folder, error) {
	c, err := a.loadConfig(a.config, "")
	if err != nil {
		return nil, daemon.Folder{}, err
	}
	folder, err := daemon.NewFolder(c)
	return c, folder, err
}

// formerDaemon returns where the controller of an invalid configuration is, and its folder, and whether it has ever run
// there.
func (a *app) formerDaemon() (c *config.Config, folder daemon.Folder, ran bool) {
	c, err := config.Locate(a.config)
	if err == nil {
		folder, err = daemon.NewFolder(c)
	}
	if err == nil {
		_, err = folder.Token()
	}
	return c, folder, err == nil
}

// noLocal returns why the controller on this host cannot be reached.
func (a *app) noLocal(fleet string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return drover.Errorf(drover.KindUnreachable, "the controller of fleet %s has never run on this host: %v", fleet, err).
			WithHint("drover serve -c %s starts it", a.config)
	case errors.Is(err, fs.ErrPermission):
		return drover.Errorf(drover.KindForbidden, "%v", err).WithHint("only the controller's user may use its token; others need their own: drover token create")
	}
	return err
}

// localBase returns where this host reaches the controller of a configuration: at the address that it recorded,
// since the file may have changed after it started to listen; otherwise at the file's address.
func localBase(listen, url string, folder daemon.Folder) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); port != "0" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return baseOf(listen, url)
	}
	address, err := folder.Announced()
	if errors.Is(err, fs.ErrNotExist) && port != "0" {
		return baseOf(listen, url)
	}
	if err != nil {
		return "", err
	}
	return baseOf(address, url)
}

// baseOf returns where to reach a controller with a listen address: if possible on loopback, which nobody can tap.
func baseOf(listen, url string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	ip := net.ParseIP(host)
	switch {
	case ip != nil && ip.IsUnspecified():
		host = "127.0.0.1"
	case url != "" && ip != nil && !ip.IsLoopback():
		return url, nil
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// tokenFrom reads the token from the source that a flag names. The flag does not accept the token itself, which
// everybody could read in the process list.
func tokenFrom(flag string) (drover.Secret, error) {
	path, ok := strings.CutPrefix(flag, "file:")
	if !ok {
		return drover.Secret{}, drover.Errorf(drover.KindInvalid, "--token does not accept the token itself").
			WithHint("use --token file:PATH, or set DROVER_TOKEN")
	}
	token, err := daemon.ReadToken(path)
	if err != nil {
		return token, drover.AsError(err, drover.KindInvalid)
	}
	return token, nil
}

// exitBrokenPipe is the exit code that shells use for SIGPIPE.
const exitBrokenPipe = 141

// ask makes a command call the controller.
func (a *app) ask(do func(ctx context.Context, svc drover.Service, args []string) error) func(*cobra.Command, []string) error {
	return untilSignal(func(ctx context.Context, args []string) error {
		svc, err := a.connect(ctx)
		if err != nil {
			return err
		}
		return do(ctx, svc, args)
	})
}

// untilSignal makes Ctrl-C and a closed output end a command silently.
func untilSignal(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err := do(ctx, args)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return exit(exitInterrupted)
		case errors.Is(err, syscall.EPIPE):
			return exit(exitBrokenPipe)
		}
		return err
	}
}
