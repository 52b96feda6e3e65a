package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"drover"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// priceLists replace the clouds' own offerings, by cloud; the list under the empty name is for every cloud without its
// own list.
type priceLists map[string]priceList

// priceList is the content of a file.
type priceList struct {
	file   string
	prices []trace.Price
}

// addCatalogue adds the flag that replaces calls to clouds with price lists.
func (a *app) addCatalogue(flags *pflag.FlagSet) {
	if a.lists == nil {
		a.lists = priceLists{}
	}
	flags.Var(a.lists, "catalogue", "read the types and prices of all clouds, or of one, from `[CLOUD=]FILE.csv`; default: ask the clouds")
}

// Set reads the list that a flag names. The flag may be repeated, once for each cloud.
func (l priceLists) Set(given string) error {
	cloud, file, named := strings.Cut(given, "=")
	if !named {
		cloud, file = "", given
	}
	if _, twice := l[cloud]; twice {
		return drover.Errorf(drover.KindInvalid, "--catalogue was given twice for the same cloud").WithHint("use --catalogue CLOUD=FILE.csv for each cloud")
	}
	prices, err := trace.OpenPrices(file)
	l[cloud] = priceList{file, prices}
	return err
}

func (l priceLists) String() string { return "" }

func (l priceLists) Type() string { return "file" }

// of returns the list of a cloud; nil if the cloud must be called.
func (l priceLists) of(cloud string) []trace.Price {
	if list, own := l[cloud]; own {
		return list.prices
	}
	return l[""].prices
}

// files returns the lists' files, in order.
func (l priceLists) files() (all []string) {
	for _, list := range l {
		all = append(all, list.file)
	}
	slices.Sort(all)
	return all
}

// everywhere reports whether there is a list for every cloud without its own.
func (l priceLists) everywhere() bool { return l[""].prices != nil }

// check rejects a list for a cloud that the configuration does not have.
func (l priceLists) check(c *config.Config) error {
	for name := range l {
		if name != "" && !slices.Contains(c.CloudNames(), name) {
			return drover.Errorf(drover.KindInvalid, "--catalogue: there is no cloud %s", name).WithHint("the configured clouds are %s", strings.Join(c.CloudNames(), ", "))
		}
	}
	return nil
}

// bare is the cloud of a user with a price list and no configuration: it has no limits.
const bare = "cloud"

// listedConfig returns a configuration, or one cloud of it. Without a file, the only cloud is this computer or, with a
// price list, a cloud without limits. Only the drivers of clouds that must be called are checked.
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
	only := c.Cloud(onlyCloud)
	if only == nil {
		return nil, drover.Errorf(drover.KindInvalid, "there is no cloud %s", onlyCloud).WithHint("the configured clouds are %s", strings.Join(c.CloudNames(), ", "))
	}
	c.Clouds = []config.Cloud{*only}
	return c, nil
}

// asked returns the configuration's clouds that have no list.
func (l priceLists) asked(c *config.Config) []config.Cloud {
	return slices.DeleteFunc(slices.Clone(c.Clouds), func(cloud config.Cloud) bool { return l.of(cloud.Name) != nil })
}

// listedOfferings returns the offerings of a configuration's clouds: from a list, with a model for what the list lacks,
// or from the cloud. It adds a called cloud's billing to the configuration.
func (a *app) listedOfferings(ctx context.Context, c *config.Config, m simulate.Models) (all []drover.Offering, leftOut []drover.LeftOut, err error) {
	asked := *c
	if asked.Clouds = a.lists.asked(c); len(asked.Clouds) > 0 {
		if all, leftOut, err = a.offeringsOf(ctx, &asked); err != nil {
			return nil, nil, err
		}
	}
	for i, cloud := range c.Clouds {
		if own := asked.Cloud(cloud.Name); own != nil {
			c.Clouds[i] = *own
			continue
		}
		listed := m.Offerings(cloud.Name, []string{"a"}, a.lists.of(cloud.Name))
		usable, others := control.Cloud{Offer: cloud.Offer}.Usable(listed)
		all, leftOut = append(all, usable...), append(leftOut, others...)
	}
	return all, leftOut, nil
}

// noteModelled says that spot prices are modelled, if a list lacks any.
func (a *app) noteModelled() {
	for _, list := range a.lists {
		if slices.ContainsFunc(list.prices, func(p trace.Price) bool { return p.Spot == 0 }) {
			fmt.Fprintf(a.err, "%s lacks spot prices: they are modelled as 25 to 45%% of the on-demand prices\n", list.file)
		}
	}
}

// loadConfig reads the configuration for a command: the file it names, or else this computer.
func (a *app) loadConfig(file, onlyCloud string) (*config.Config, error) {
	return a.listedConfig(file, onlyCloud, nil)
}
