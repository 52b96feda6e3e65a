package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"drover"
)

func (a *app) openCommand() *cobra.Command {
	only := false
	cmd := unformatted("it prints a link", &cobra.Command{
		Use:   "open",
		Short: "Show the dashboard in a browser",
		Long: `Show the dashboard in a browser, and print its link. The link works once, within a minute, and gives
the browser the rights of your token. The session lasts twelve hours, or until the token is
revoked.`,
		Example: "  drover -c drover.yaml open\n  drover open --print --server https://drover.example.org --token file:token",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			return a.openDashboard(ctx, svc, only)
		}),
	})
	cmd.Flags().BoolVar(&only, "print", false, "only print the link")
	return cmd
}

func (a *app) openDashboard(ctx context.Context, svc drover.Service, only bool) error {
	with, ok := svc.(interface { // makes links for browsers
		Login(context.Context) (link string, err error)
	})
	if !ok {
		return drover.Errorf(drover.KindUnsupported, "this controller has no dashboard")
	}
	link, err := with.Login(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.out, link); err != nil || only {
		return err
	}
	return a.browse(ctx, link)
}

// browse opens a link in a browser, if there is a display.
func (a *app) browse(ctx context.Context, link string) error {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return nil // for example over SSH: the link is for a browser elsewhere
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	if err := exec.CommandContext(ctx, program, link).Run(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(a.err, "no browser could be opened (%v): open the link yourself\n", err)
	}
	return nil
}
