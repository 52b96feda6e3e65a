package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

// instancesFlags are the flags of `drover instances`.
type instancesFlags struct {
	gone  bool
	cloud string
	watch watchFlag
}

func (a *app) instancesCommand() *cobra.Command {
	var f instancesFlags
	cmd := named(&cobra.Command{
		Use:        "instances [INSTANCE…]",
		SuggestFor: []string{"ps", "ls", "list", "vms", "nodes"},
		Short:      "List the instances or show the ones you name",
		Long: `List the instances, or show one in full. Identify an instance by its id, its name, or the id that its
cloud uses.

With -o wide, the table also shows each instance's cloud, its id there, its pool and its addresses.`,
		Example: "  drover instances\n  drover instances --watch -o wide\n  drover instances 3",
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			args = f.watch.takeInterval(args)
			return f.watch.show(ctx, a, "drover instances", func(a *app) error { return a.instances(ctx, svc, f, args) })
		}),
	})
	cmd.Flags().BoolVar(&f.gone, "all", false, "also show instances that are gone")
	cmd.Flags().StringVar(&f.cloud, "cloud", "", "only instances in this `cloud`")
	complete(cmd, "cloud", a.completeClouds)
	f.watch.add(cmd)
	cmd.ValidArgsFunction = a.completeInstances
	return cmd
}

func (a *app) instances(ctx context.Context, svc drover.Fleet, f instancesFlags, args []string) error {
	if len(args) == 0 {
		return printList(a, instanceListing, allInstances(ctx, svc, drover.InstanceFilter{Gone: f.gone, Cloud: f.cloud}))
	}
	if f.cloud != "" {
		return drover.Errorf(drover.KindInvalid, "an INSTANCE and --cloud cannot be used together").WithHint("leave one of them out")
	}
	var found []drover.Instance
	for _, name := range args {
		in, err := svc.Instance(ctx, name)
		if err != nil {
			return err
		}
		found = append(found, in)
	}
	if len(found) == 1 && a.forPeople() {
		a.showInstance(found[0])
		return nil
	}
	return printNamed(a, instanceListing, found)
}

var instanceListing = listing[drover.Instance]{
	name: func(in drover.Instance) string { return in.Name },
	none: "no instances",
	columns: []column[drover.Instance]{
		{title: "ID", text: func(in drover.Instance) string { return fmt.Sprint(in.ID) }, right: true},
		{title: "NAME", text: func(in drover.Instance) string { return in.Name }},
		{title: "CLOUD", text: func(in drover.Instance) string { return in.Cloud }, wide: true},
		{title: "TYPE", text: func(in drover.Instance) string { return in.Type }},
		{title: "ZONE", text: func(in drover.Instance) string { return in.Zone }},
		{title: "MARKET", text: func(in drover.Instance) string { return string(in.Market) }},
		{title: "STATE", text: instanceStateWords, color: func(in drover.Instance) color { return instanceColor(in.State) }},
		{title: "USER", text: func(in drover.Instance) string { return in.User }, wide: true},
		{title: "POOL", text: func(in drover.Instance) string { return in.Pool }, wide: true},
		{title: "JOBS", text: jobsOn},
		{title: "AGE", text: instanceAge},
		{title: "$/HOUR", text: func(in drover.Instance) string { return human.Dollars(in.Price) }, right: true},
		{title: "COST", text: func(in drover.Instance) string { return human.Dollars(in.Cost) }, right: true},
		{title: "PROVIDER ID", text: func(in drover.Instance) string { return in.ProviderID }, wide: true},
		{title: "ADDRESSES", text: func(in drover.Instance) string { return strings.Join(in.Addresses, ",") }, wide: true},
		{title: "REASON", text: func(in drover.Instance) string { return reasonWords(in.Reason) }},
	},
}

// instanceStateWords returns an instance's state and, if it is not the usual one, its idle behaviour.
func instanceStateWords(in drover.Instance) string {
	if in.Idle == drover.IdleRun || in.Idle == "" {
		return string(in.State)
	}
	return string(in.State) + " " + string(in.Idle)
}

// jobsOn returns the first jobs on an instance, and how many more there are.
func jobsOn(in drover.Instance) string {
	const most = 3
	if more := len(in.Jobs) - most; more > 0 {
		return fmt.Sprintf("%s,+%d", jobList(in.Jobs[:most], ","), more)
	}
	return jobList(in.Jobs, ",")
}

func jobList(ids []drover.JobID, separator string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = id.String()
	}
	return strings.Join(words, separator)
}

// instanceAge returns how long an instance has existed, or did.
func instanceAge(in drover.Instance) string {
	if in.Created != nil && in.Gone != nil {
		return human.Age(in.Gone.Sub(*in.Created))
	}
	return human.AgeOf(in.Created)
}

// showInstance prints everything about an instance.
func (a *app) showInstance(in drover.Instance) {
	var f facts
	f.add("id", fmt.Sprint(in.ID))
	f.add("name", in.Name)
	f.add("cloud", in.Cloud)
	f.add("provider id", in.ProviderID)
	f.add("zone", in.Zone)
	f.add("type", in.Type)
	f.add("market", string(in.Market))
	f.add("state", string(in.State))
	f.add("idle behavior", string(in.Idle))
	f.add("reason", reasonWords(in.Reason))
	f.add("user", in.User)
	f.add("pool", in.Pool)
	f.add("jobs", jobList(in.Jobs, ", "))
	f.add("addresses", strings.Join(in.Addresses, ", "))
	if in.Login != nil {
		f.add("login", in.Login.User+" at "+in.Login.Address)
		f.add("host key", in.Login.HostKey)
	}
	f.add("price", human.Dollars(in.Price)+" an hour")
	f.add("cost", human.Dollars(in.Cost))
	f.add("created", human.Stamp(in.Created))
	f.add("ready", human.Stamp(in.Ready))
	f.add("idle since", human.Stamp(in.IdleSince))
	f.add("gone", human.Stamp(in.Gone))
	f.print(a.out)
	if len(in.RunnerLog) > 0 {
		fmt.Fprintln(a.out, "\nThe last lines of its runner's log:")
	}
	for _, line := range in.RunnerLog {
		fmt.Fprintf(a.out, "    %s\n", drover.Sanitize(line))
	}
}
