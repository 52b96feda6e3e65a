package kit

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"drover"
	"drover/driver"
)

// TypeKeys are the configuration keys that choose which types are offered.
type TypeKeys struct {
	ListTypes bool   `yaml:"list_types" doc:"whether to offer the cloud's own types, with its prices"`
	Types     []Type `yaml:"types" doc:"your own types, in addition to the cloud's or instead of them"`
}

// MarketKeys are the configuration keys that choose the markets.
type MarketKeys struct {
	Markets  []drover.Market `yaml:"markets" doc:"on_demand, spot; default: both"`
	Discount Percent         `yaml:"spot_discount" doc:"the discount for your own types without a spot price"`
}

// DefaultTypes offers the cloud's own types.
func DefaultTypes() TypeKeys { return TypeKeys{ListTypes: true} }

// DefaultMarkets offers both markets.
func DefaultMarkets() MarketKeys {
	return MarketKeys{Markets: []drover.Market{drover.OnDemand, drover.Spot}, Discount: 60}
}

// CheckTypes refuses a configuration that offers no types.
func (k TypeKeys) CheckTypes() error {
	if !k.ListTypes && len(k.Types) == 0 {
		return drover.Errorf(drover.KindInvalid, "list_types is false and types is missing, so no instance can be rented").WithHint("write types: [{name: …, vcpus: …, memory: …, price: …}]")
	}
	return nil
}

// CheckMarkets refuses unknown markets.
func (k MarketKeys) CheckMarkets() error {
	for _, m := range k.Markets {
		if m != drover.OnDemand && m != drover.Spot {
			return drover.Errorf(drover.KindInvalid, "markets: %q is neither %s nor %s", m, drover.OnDemand, drover.Spot)
		}
	}
	return nil
}

// Wants reports whether the market is configured.
func (k MarketKeys) Wants(m drover.Market) bool { return slices.Contains(k.Markets, m) }

// Catalogue is what a cloud's offerings are made from.
type Catalogue struct {
	Cloud    string
	Zones    []string    // of configured types
	Keys     MarketKeys  // default: only on demand
	Arch     drover.Arch // of configured types that do not set it; default: amd64
	Own      func(context.Context) ([]Own, error)
	Within   []string               // the zones in which the cloud's own types are offered; empty: all zones
	Complete func(*drover.Offering) // sets what both kinds of types have, such as the quota group; may be nil
}

// Own is one of the cloud's own types.
type Own struct {
	Name      string
	Resources drover.Resources
	LocalDisk drover.Bytes
	Zones     []string
	Price     func(zone string, m drover.Market) (perHour drover.Money, sold bool)
}

// offer makes an offering of a type for each zone and market in which it is sold.
func (c Catalogue) offer(t Own) (all []drover.Offering) {
	offered := drover.InstanceType{Name: t.Name, ProviderType: t.Name, Resources: t.Resources, LocalDisk: t.LocalDisk}
	for _, zone := range t.Zones {
		for _, m := range c.Keys.Markets {
			price, sold := t.Price(zone, m)
			if sold && (len(c.Within) == 0 || slices.Contains(c.Within, zone)) {
				all = append(all, drover.Offering{Cloud: c.Cloud, Zone: zone, Type: offered, Market: m, Price: price})
			}
		}
	}
	return all
}

// Offerings merges the cloud's own types, if wanted, with the configured ones, which replace the cloud's types of the
// same name.
func (k TypeKeys) Offerings(ctx context.Context, c Catalogue) (all []drover.Offering, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(c.Keys.Markets) == 0 {
		c.Keys.Markets = []drover.Market{drover.OnDemand}
	}
	if len(k.Types) > 0 {
		all, err = StaticOfferings(k.Types, StaticOptions{
			Cloud: c.Cloud, Zones: c.Zones, Markets: c.Keys.Markets, Discount: c.Keys.Discount, Default: drover.Resources{Arch: cmp.Or(c.Arch, "amd64")},
		})
		if err != nil {
			return nil, err
		}
	}
	if k.ListTypes {
		own, err := c.Own(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range own {
			if !slices.ContainsFunc(k.Types, func(hand Type) bool { return hand.Name == t.Name }) {
				all = append(all, c.offer(t)...)
			}
		}
		driver.SortOfferings(all)
	}
	for i := range all {
		if c.Complete != nil {
			c.Complete(&all[i])
		}
	}
	return all, nil
}

// TagRules say which configured tags a cloud accepts.
type TagRules struct {
	Key, Value *regexp.Regexp
	Reserved   string // prefix of the cloud's own keys; empty: nothing is reserved
	Hint       string // what keys and values may contain
}

// Check refuses configured tags that the cloud would not accept, or that could be mistaken for Drover's own. The
// parameter key is the configuration key.
func (r TagRules) Check(key string, tags map[string]string) error {
	for k, v := range tags {
		if !r.Key.MatchString(k) || !r.Value.MatchString(v) || strings.HasPrefix(strings.ToLower(k), "drover-") ||
			r.Reserved != "" && strings.HasPrefix(k, r.Reserved) {
			return drover.Errorf(drover.KindInvalid, "%s: %.80q with the value %.80q is not allowed", key, k, v).WithHint("%s; a key must not begin with drover-", r.Hint)
		}
	}
	return nil
}

// OneOf reads one of a few words.
func OneOf[T ~string](into *T, text []byte, words ...T) error {
	if !slices.Contains(words, T(text)) {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(words), "[]")), ", "))
	}
	*into = T(text)
	return nil
}
