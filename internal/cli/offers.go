package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/preview"
	"drover/internal/simulate"
)

// offersFlags are the flags of `drover offers`.
type offersFlags struct {
	vcpus  string
	memory string
	disk   string
	gpus   int
	arch   string
	cloud  string
	all    bool
	watch  watchFlag
}

func (a *app) offersCommand() *cobra.Command {
	var f offersFlags
	cmd := named(&cobra.Command{
		Use:   "offers",
		Short: "List the available instance types, cheapest first, and the blocked ones, with reasons",
		Long: `List the instance types that can be rented in each zone and market, cheapest first. For types that
are blocked, at a limit or too expensive, show why and until when. Without a running controller, the
list comes from the clouds of the configuration or, without a configuration, from this computer;
blocks are then unknown. With -o wide, the table also shows disks, reservations and, where the cloud
publishes them, interruption rates.`,
		Example: "  drover offers\n  drover offers --vcpus 8 --memory 32Gi --arch arm64\n  drover offers --all --gpus 1",
		Args:    wantArgs(0, 1, ""),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.offers(cmd, f, args) },
	})
	flags := cmd.Flags()
	flags.StringVar(&f.vcpus, "vcpus", "", "only types with at least `N` vCPUs")
	flags.StringVar(&f.memory, "memory", "", "only types with at least this much memory, a `size` such as 4Gi")
	flags.StringVar(&f.disk, "disk", "", "only types with at least this much disk space, a `size` such as 10Gi")
	flags.IntVar(&f.gpus, "gpus", 0, "only types with at least `N` GPUs")
	flags.StringVar(&f.arch, "arch", "", "only types of this `architecture`: amd64 or arm64")
	flags.StringVar(&f.cloud, "cloud", "", "only types of this `cloud`")
	flags.BoolVar(&f.all, "all", false, "also show types that types.include, types.exclude or types.max_price rules out")
	f.watch.add(cmd)
	a.addCatalogue(flags)
	complete(cmd, "cloud", a.completeClouds)
	complete(cmd, "arch", completeWords("amd64", "arm64"))
	return cmd
}

// offers asks the controller or, if only a configuration is given and it has no running controller, the configuration's
// clouds.
func (a *app) offers(cmd *cobra.Command, f offersFlags, args []string) error {
	if args = f.watch.takeInterval(args); len(args) > 0 {
		return drover.Errorf(drover.KindInvalid, "drover offers takes no arguments, but got %s", args[0])
	}
	filter, err := f.filter()
	if err != nil {
		return err
	}
	named := a.givenServer() != ""
	if len(a.lists) > 0 || !named && a.onlyForRuns() {
		return a.previewOffers(cmd.Context(), f, filter)
	}
	err = a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
		return f.watch.show(ctx, a, "drover offers", func(a *app) error {
			offers, err := svc.Offers(ctx, filter)
			if err != nil {
				return err
			}
			return printList(a, offerListing, each(offers))
		})
	})(cmd, args)
	if named || drover.KindOf(err) != drover.KindUnreachable {
		return err
	}
	return a.previewOffers(cmd.Context(), f, filter)
}

// onlyForRuns reports whether there is no configuration, or one that is enough for drover run but not for a controller.
func (a *app) onlyForRuns() bool {
	if a.config == "" {
		return true
	}
	c, err := a.loadConfig(a.config, "")
	return err == nil && c.Fleet == ""
}

// previewOffers lists the offerings that a new controller of the configuration would have.
func (a *app) previewOffers(ctx context.Context, f offersFlags, filter drover.OfferFilter) error {
	c, err := a.listedConfig(a.config, f.cloud, a.lists)
	if err != nil {
		return err
	}
	all, leftOut, err := a.listedOfferings(ctx, c, simulate.DefaultModels)
	if err != nil {
		return err
	}
	seen, err := preview.New(daemon.Settings(c, daemon.RunLimits{}), all, drover.Batch{})
	if err != nil {
		return err
	}
	if a.noteModelled(); len(a.lists) == 0 {
		fmt.Fprintln(a.err, "these are the offerings of the configured clouds; without a controller, it is unknown which are blocked")
	}
	return printList(a, offerListing, each(control.Chosen(seen.Offers(), leftOut, filter)))
}

func (f offersFlags) filter() (filter drover.OfferFilter, err error) {
	filter = drover.OfferFilter{Need: drover.Resources{GPUs: f.gpus, Arch: drover.Arch(f.arch)}, Cloud: f.cloud, All: f.all}
	switch {
	case f.gpus < 0:
		return filter, drover.Errorf(drover.KindInvalid, "--gpus is %d, but must not be negative", f.gpus)
	case f.arch != "" && f.arch != "amd64" && f.arch != "arm64":
		return filter, drover.Errorf(drover.KindInvalid, "--arch %s is not valid", f.arch).WithHint("use amd64 or arm64")
	}
	if f.vcpus != "" {
		if filter.Need.CPU, err = drover.ParseMilliCPU(f.vcpus); err != nil {
			return filter, drover.Errorf(drover.KindInvalid, "--vcpus: %v", err)
		}
	}
	for flag, given := range map[string]struct {
		text string
		into *drover.Bytes
	}{"memory": {f.memory, &filter.Need.Memory}, "disk": {f.disk, &filter.Need.Disk}} {
		if given.text == "" {
			continue
		}
		if *given.into, err = config.ParseSize(given.text); err != nil {
			return filter, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return filter, nil
}

var offerListing = listing[drover.Offer]{
	name: func(o drover.Offer) string { return fmt.Sprintf("%s/%s/%s/%s", o.Cloud, o.Zone, o.Type, o.Market) },
	none: "no matching offerings",
	columns: []column[drover.Offer]{
		{title: "CLOUD", text: func(o drover.Offer) string { return o.Cloud }},
		{title: "ZONE", text: func(o drover.Offer) string { return o.Zone }},
		{title: "TYPE", text: func(o drover.Offer) string { return o.Type }},
		{title: "MARKET", text: func(o drover.Offer) string { return string(o.Market) }},
		{title: "VCPUS", text: func(o drover.Offer) string { return fmt.Sprint(o.VCPUs) }, right: true},
		{title: "MEMORY", text: func(o drover.Offer) string { return human.Size(o.Memory) }, right: true},
		{title: "GPUS", text: func(o drover.Offer) string { return fmt.Sprint(o.GPUs) }, right: true},
		{title: "ARCH", text: func(o drover.Offer) string { return string(o.Arch) }},
		{title: "DISK", text: diskWords, wide: true, right: true},
		{title: "LOCAL DISK", text: func(o drover.Offer) string { return sizeIfAny(o.LocalDisk) }, wide: true, right: true},
		{title: "INTERRUPTED", text: interruptionWords, wide: true, right: true},
		{title: "$/HOUR", text: func(o drover.Offer) string { return human.Dollars(o.Price) }, right: true},
		{title: "RESERVED", text: func(o drover.Offer) string { return map[bool]string{true: "yes"}[o.Reserved] }, wide: true},
		{title: "BLOCKED", text: blockedWords, color: func(drover.Offer) color { return yellow }},
	},
}

// diskWords formats the disk that an instance comes with, or else the cost of a GiB for a month of 730 hours, the
// clouds' own convention.
func diskWords(o drover.Offer) string {
	switch {
	case o.Disk != 0:
		return human.Size(o.Disk)
	case o.DiskPrice > 0:
		return fmt.Sprintf("as requested, $%.3f/GiB/month", o.DiskPrice*730)
	}
	return "as requested"
}

func sizeIfAny(b drover.Bytes) string {
	if b == 0 {
		return ""
	}
	return human.Size(b)
}

// interruptionWords formats the likelihood of an interruption within an hour, if it is known.
func interruptionWords(o drover.Offer) string {
	if o.Interruptions == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g%%/hour", float64(o.Interruptions)/10_000)
}

func blockedWords(o drover.Offer) string {
	switch {
	case o.LeftOut != "":
		return "left out: " + o.LeftOut
	case o.Blocked == nil:
		return ""
	}
	text := o.Blocked.Reason
	if o.Blocked.Code != "" {
		text = o.Blocked.Code + ": " + text
	}
	if o.Blocked.Until == 0 {
		return text
	}
	return "until " + human.Clock(o.Blocked.Until) + ": " + text
}
