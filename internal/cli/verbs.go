package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

// verbs are the operator's verbs as commands.
var verbs = []struct {
	verb    drover.Verb
	short   string
	long    string
	example string
}{
	{
		drover.VerbDrain, "Let instances finish their jobs, then destroy them",
		"Let instances finish their running jobs, then destroy them.",
		"drover drain 3 --reason 'a new image'",
	},
	{
		drover.VerbHold, "Keep instances without giving them new work",
		"Keep instances until they are released or killed: running jobs finish, and nothing new starts. A hold\nsurvives restarts of the controller, and held instances cost money.",
		"drover hold 3 --reason 'inspecting its disk'",
	},
	{
		drover.VerbRelease, "Let held or draining instances take work again",
		"Let held or draining instances take work again.",
		"drover release 3",
	},
	{
		drover.VerbKill, "Destroy instances now, even if jobs are running",
		"Destroy instances now. Their jobs run again elsewhere.",
		"drover kill 3 --reason 'it hangs'",
	},
}

func (a *app) verbCommands() (commands []*cobra.Command) {
	for _, v := range verbs {
		var reason string
		var all bool
		cmd := named(&cobra.Command{
			Use:     string(v.verb) + " INSTANCE…",
			Short:   v.short,
			Long:    v.long + "\n\nIdentify an instance by its id, its name, or the id that its cloud uses.",
			Example: "  " + v.example,
			Args: func(cmd *cobra.Command, args []string) error {
				if all {
					return wantArgs(0, 0, "no INSTANCE with --all")(cmd, args)
				}
				return wantArgs(1, -1, "an INSTANCE")(cmd, args)
			},
			RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
				if all {
					for in, err := range allInstances(ctx, svc, drover.InstanceFilter{}) {
						if err != nil {
							return err
						}
						args = append(args, in.Name)
					}
				}
				do := func(name string) (drover.Instance, error) { return svc.Instruct(ctx, name, v.verb, reason) }
				return changeEach(a, instanceListing, args, do, func(in drover.Instance) string { return toldWords(in, v.verb) })
			}),
		})
		if v.verb != drover.VerbKill {
			cmd.Flags().BoolVar(&all, "all", false, "all current instances")
		}
		cmd.Flags().StringVar(&reason, "reason", "", "`text` to record with the instance")
		cmd.ValidArgsFunction = a.completeInstances
		commands = append(commands, cmd)
	}
	return commands
}

var toldTo = map[drover.Verb]string{
	drover.VerbDrain: "will drain", drover.VerbHold: "is held", drover.VerbRelease: "is released", drover.VerbKill: "is killed",
}

// toldWords describes an instance's state after a verb.
func toldWords(in drover.Instance, verb drover.Verb) string {
	text := string(in.State)
	if len(in.Jobs) > 0 {
		text += ", " + human.Plural(len(in.Jobs), "job")
	}
	return fmt.Sprintf("%s %s (%s)", in.Name, toldTo[verb], text)
}
