package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/human"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Create, list and revoke tokens for people and programs",
		Example: "  drover token create --user ada --role submit --expires 30d",
	}
	cmd.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return cmd
}

func (a *app) tokenCreate() *cobra.Command {
	var request drover.TokenRequest
	var expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it once",
		Long: `Create a token. It is printed on standard output, once; the controller keeps only its hash.

Each role includes the ones before it: view sees the fleet and all jobs, but not other users' logs,
outputs, labels and commands; submit submits jobs and changes the user's own jobs; operate reads
and changes all jobs and instances; admin creates tokens.`,
		Example: "  drover token create --user ada --role submit --expires 30d > token && chmod 600 token\n  drover --server https://drover.example.org --token file:token jobs",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) (err error) {
			if request.TTL, err = lifetime(expires); err != nil {
				return err
			}
			return a.createToken(ctx, svc, request)
		}),
	}
	cmd.Flags().StringVar(&request.User, "user", "", "the token's `user`")
	cmd.Flags().StringVar((*string)(&request.Role), "role", "", "the token's `role`: view, submit, operate or admin")
	cmd.Flags().StringVar(&expires, "expires", "", "the token expires after this `time`, such as 12h or 30d; default: never")
	complete(cmd, "role", completeWords(drover.Roles()...))
	return cmd
}

// lifetime parses a duration such as 12h or 30d; empty means forever.
func lifetime(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, drover.Errorf(drover.KindInvalid, "--expires %s is not a valid duration", text).WithHint("use 12h or 30d, or leave out --expires")
	}
	return d, nil
}

func (a *app) createToken(ctx context.Context, svc drover.Access, r drover.TokenRequest) error {
	var missing []string
	if r.User == "" {
		missing = append(missing, "--user NAME")
	}
	if r.Role == "" {
		missing = append(missing, "--role "+strings.Join(plainWords(drover.Roles()), "|"))
	}
	if missing != nil {
		return drover.Errorf(drover.KindInvalid, "a token needs %s", strings.Join(missing, " and ")).
			WithHint("for example: drover token create --user ada --role submit --expires 30d")
	}
	t, err := svc.CreateToken(ctx, r)
	if err != nil {
		return err
	}
	if a.forPrograms() {
		return a.print(t)
	}
	ends := "does not expire"
	if t.Expires != nil {
		ends = "expires " + human.Stamp(t.Expires)
	}
	fmt.Fprintln(a.err, drover.Sanitize(fmt.Sprintf("token %s for %s, role %s, %s; it is shown only once:", t.ID, t.User, t.Role, ends)))
	_, err = fmt.Fprintln(a.out, t.Secret)
	return err
}

func (a *app) tokenList() *cobra.Command {
	return named(&cobra.Command{
		Use:     "list",
		Short:   "List the tokens that have not been revoked",
		Example: "  drover token list",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			tokens, err := svc.Tokens(ctx)
			if err != nil {
				return err
			}
			return printList(a, tokenListing, each(tokens))
		}),
	})
}

var tokenListing = listing[drover.Token]{
	name: func(t drover.Token) string { return t.ID },
	none: "there are no tokens except the local one",
	columns: []column[drover.Token]{
		{title: "ID", text: func(t drover.Token) string { return t.ID }},
		{title: "USER", text: func(t drover.Token) string { return t.User }},
		{title: "ROLE", text: func(t drover.Token) string { return string(t.Role) }},
		{title: "CREATED", text: func(t drover.Token) string { return human.Stamp(&t.Created) }},
		{title: "EXPIRES", text: expiryWords},
	},
}

func expiryWords(t drover.Token) string {
	switch {
	case t.Expires == nil:
		return "never"
	case t.Expires.Before(time.Now()):
		return "expired " + human.Stamp(t.Expires)
	}
	return human.Stamp(t.Expires)
}

func (a *app) tokenRevoke() *cobra.Command {
	cmd := unformatted(onlyExitCode, &cobra.Command{
		Use:     "revoke ID…",
		Short:   "Revoke tokens immediately",
		Example: "  drover token revoke t4",
		Args:    wantArgs(1, -1, "the ID of a token"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			return forEach(args, func(id string) error {
				err := svc.RevokeToken(ctx, id)
				if err == nil {
					fmt.Fprintln(a.err, drover.Sanitize("token "+id+" is revoked"))
				}
				return err
			})
		}),
	})
	cmd.ValidArgsFunction = a.completeTokens
	return cmd
}
