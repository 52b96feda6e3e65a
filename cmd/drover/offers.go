package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drover"
)

// offersFlags are the flags of `drover offers`.
type offersFlags struct {
	vcpus  string
	memory string
	disk   string
	gpus   int
	arch   string
	cloud  string
	watch  watchFlag
}

func (a *app) offersCommand() *cobra.Command {
	var f offersFlags
	cmd := named(&cobra.Command{
		Use:   "offers",
		Short: "List what could be rented, cheapest first, and what is blocked until when and why",
		Long: `List what could be rented: every instance type in every zone and market that has what is asked for, cheapest first, and of what is blocked
until when and why.`,
		Example: "  drover offers\n  drover offers --vcpus 8 --memory 32Gi --arch arm64",
		Args:    wantArgs(0, 1, "no argument"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			if args = f.watch.takeInterval(args); len(args) > 0 {
				return drover.Errorf(drover.KindInvalid, "drover offers takes no argument, and got %s", args[0])
			}
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return f.watch.show(ctx, a, "drover offers", func(a *app) error {
				offers, err := svc.Offers(ctx, filter)
				if err != nil {
					return err
				}
				return printList(a, offerListing, each(offers))
			})
		}),
	})
	flags := cmd.Flags()
	flags.StringVar(&f.vcpus, "vcpus", "", "with at least so many vCPUs")
	flags.StringVar(&f.memory, "memory", "", "with at least so much memory, such as 4Gi")
	flags.StringVar(&f.disk, "disk", "", "with at least so much disk, such as 10Gi")
	flags.IntVar(&f.gpus, "gpus", 0, "with at least `N` GPUs")
	flags.StringVar(&f.arch, "arch", "", "of this architecture: `amd64` or arm64")
	flags.StringVar(&f.cloud, "cloud", "", "only those of this `cloud`")
	f.watch.add(cmd)
	complete(cmd, "arch", completeWords("amd64", "arm64"))
	return cmd
}

func (f offersFlags) filter() (filter drover.OfferFilter, err error) {
	filter = drover.OfferFilter{Need: drover.Resources{GPUs: f.gpus, Arch: drover.Arch(f.arch)}, Cloud: f.cloud}
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
		if *given.into, err = drover.ParseBytes(given.text); err != nil {
			return filter, drover.Errorf(drover.KindInvalid, "--%s: %v", flag, err)
		}
	}
	return filter, nil
}

var offerListing = listing[drover.Offer]{
	name: func(o drover.Offer) string { return fmt.Sprintf("%s/%s/%s/%s", o.Cloud, o.Zone, o.Type, o.Market) },
	none: "no offers",
	columns: []column[drover.Offer]{
		{title: "CLOUD", text: func(o drover.Offer) string { return o.Cloud }},
		{title: "ZONE", text: func(o drover.Offer) string { return o.Zone }},
		{title: "TYPE", text: func(o drover.Offer) string { return o.Type }},
		{title: "MARKET", text: func(o drover.Offer) string { return string(o.Market) }},
		{title: "VCPUS", text: func(o drover.Offer) string { return fmt.Sprint(o.VCPUs) }, right: true},
		{title: "MEMORY", text: func(o drover.Offer) string { return size(o.Memory) }, right: true},
		{title: "GPUS", text: func(o drover.Offer) string { return fmt.Sprint(o.GPUs) }, right: true},
		{title: "ARCH", text: func(o drover.Offer) string { return string(o.Arch) }},
		{title: "$/HOUR", text: func(o drover.Offer) string { return dollars(o.Price) }, right: true},
		{title: "BLOCKED", text: blockedWords, color: func(drover.Offer) color { return yellow }},
	},
}

func blockedWords(o drover.Offer) string {
	if o.Blocked == nil {
		return ""
	}
	if o.Blocked.Until == 0 {
		return o.Blocked.Reason
	}
	return "until " + clock(o.Blocked.Until) + ": " + o.Blocked.Reason
}
