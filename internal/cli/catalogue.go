package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"drover"
	"drover/internal/config"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// priceLists are in the place of what clouds say, by the clouds that they are of; under no name that of every cloud
// without one of its own.
type priceLists map[string]priceList

// priceList is what a file has.
type priceList struct {
	file   string
	prices []trace.Price
}

// addCatalogue adds the flag by which clouds are not asked what they offer.
func (a *app) addCatalogue(flags *pflag.FlagSet) {
	if a.lists == nil {
		a.lists = priceLists{}
	}
	flags.Var(a.lists, "catalogue", "types and prices of all clouds, or of one: `[CLOUD=]FILE.csv`; default: ask the clouds")
}

// Set reads a list that a flag names. It may name one for each cloud.
func (l priceLists) Set(given string) error {
	cloud, file, named := strings.Cut(given, "=")
	if !named {
		cloud, file = "", given
	}
	if _, twice := l[cloud]; twice {
		return drover.Errorf(drover.KindInvalid, "--catalogue is given twice for the same cloud").WithHint("write --catalogue CLOUD=FILE.csv for each cloud")
	}
	prices, err := trace.OpenPrices(file)
	l[cloud] = priceList{file, prices}
	return err
}

func (l priceLists) String() string { return "" }

func (l priceLists) Type() string { return "file" }

// of is the list of a cloud; nil if it has to be asked.
func (l priceLists) of(cloud string) []trace.Price {
	if list, own := l[cloud]; own {
		return list.prices
	}
	return l[""].prices
}

// everywhere is whether a list is of every cloud without one of its own.
func (l priceLists) everywhere() bool { return l[""].prices != nil }

// check refuses a list of a cloud that a configuration does not have.
func (l priceLists) check(c *config.Config) error {
	for name := range l {
		if name != "" && !slices.Contains(c.CloudNames(), name) {
			return drover.Errorf(drover.KindInvalid, "--catalogue: there is no cloud %s", name).WithHint("the configuration has %s", strings.Join(c.CloudNames(), ", "))
		}
	}
	return nil
}

// bare is the cloud of who has a price list and no configuration: without limits.
const bare = "cloud"

// listedConfig is a configuration, or one cloud of it: a file, or this machine, or, with a price list alone, a cloud
// without limits. Drivers are checked of those clouds alone that have to be asked.
func (a *app) listedConfig(file, onlyCloud string, lists priceLists) (*config.Config, error) {
	c := config.Default("run")
	switch {
	case file != "":
		var err error
		if c, err = config.Load(file); err != nil {
			return nil, err
		}
	case lists.everywhere():
		c.Clouds = []config.Cloud{{Name: bare}}
		c.Clouds[0].Common.Default()
		c.Clouds[0].MaxInstances, c.Clouds[0].MaxCreating = 0, 100
	}
	if err := lists.check(c); err != nil {
		return nil, err
	}
	asked := *c
	asked.Clouds = lists.asked(c)
	if err := a.program.Check(&asked); err != nil || onlyCloud == "" {
		return c, err
	}
	at := slices.Index(c.CloudNames(), onlyCloud)
	if at < 0 {
		return nil, drover.Errorf(drover.KindInvalid, "there is no cloud %s", onlyCloud).WithHint("the configuration has %s", strings.Join(c.CloudNames(), ", "))
	}
	c.Clouds = c.Clouds[at : at+1]
	return c, nil
}

// asked are the clouds of a configuration that have no list.
func (l priceLists) asked(c *config.Config) []config.Cloud {
	return slices.DeleteFunc(slices.Clone(c.Clouds), func(cloud config.Cloud) bool { return l.of(cloud.Name) != nil })
}

// listedOfferings are what the clouds of a configuration offer: those that have a list by that, with what it does not
// say modelled, and the others as they say. How a cloud bills that was asked is then in the configuration.
func (a *app) listedOfferings(ctx context.Context, c *config.Config, m simulate.Models) (all []drover.Offering, leftOut []drover.LeftOut, err error) {
	asked := *c
	if asked.Clouds = a.lists.asked(c); len(asked.Clouds) > 0 {
		if all, leftOut, err = a.offeringsOf(ctx, &asked); err != nil {
			return nil, nil, err
		}
	}
	for i, cloud := range c.Clouds {
		if at := slices.IndexFunc(asked.Clouds, func(o config.Cloud) bool { return o.Name == cloud.Name }); at >= 0 {
			c.Clouds[i] = asked.Clouds[at]
			continue
		}
		for _, o := range m.Offerings(cloud.Name, []string{"a"}, a.lists.of(cloud.Name)) {
			if paid, whyNot := cloud.Offer(o); whyNot == "" {
				all = append(all, paid)
			} else {
				leftOut = append(leftOut, drover.LeftOut{Offering: paid, Why: whyNot})
			}
		}
	}
	return all, leftOut, nil
}

// loadConfig reads the configuration that a command is to go by: the file it names, else this machine.
func (a *app) loadConfig(file, onlyCloud string) (*config.Config, error) {
	return a.listedConfig(file, onlyCloud, nil)
}
