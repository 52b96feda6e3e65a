package gce

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// priceList is the hourly prices of parts in the region: of a vCPU and a GiB of memory by series, and of a GPU and a
// GiB of disk by kind.
type priceList struct {
	OnDemand parts                   `json:"on_demand"`
	Spot     parts                   `json:"spot"`
	Disk     map[string]drover.Money `json:"disk"`
}

type parts struct {
	CPU    map[string]drover.Money `json:"cpu"`
	Memory map[string]drover.Money `json:"memory"`
	GPU    map[string]drover.Money `json:"gpu"`
}

// of returns the price of a type, if all its parts have one. Some types have their own prices, listed under their name
// without dashes.
func (p priceList) of(name string, t typeInfo, m drover.Market) (drover.Money, bool) {
	all := p.OnDemand
	if m == drover.Spot {
		all = p.Spot
	}
	series := strings.ReplaceAll(name, "-", "")
	if _, own := all.CPU[series]; !own {
		series = seriesOf(name)
	}
	cpu, hasCPU := all.CPU[series]
	memory, hasMemory := all.Memory[series]
	gpu, hasGPU := all.GPU[gpuName(t.GPU)]
	price := cpu*drover.Money(t.Resources.CPU)/1000 + memory*drover.Money(t.Resources.Memory/drover.MiB)/1024 + gpu*drover.Money(t.Resources.GPUs)
	return price, hasCPU && hasMemory && (hasGPU || t.Resources.GPUs == 0)
}

// fetchPrices reads the price list.
func (c *cloud) fetchPrices(ctx context.Context) (priceList, error) {
	skus, err := c.fetchSkus(ctx, "", "")
	return priceListOf(skus), err
}

// sku is what the driver reads from an entry in the price list.
type sku struct {
	Description    string
	ServiceRegions []string
	Category       *struct{ ResourceFamily, UsageType string }
	PricingInfo    []pricing
}

// pricing is a price and the time from which it applies.
type pricing struct {
	EffectiveTime     string
	PricingExpression struct {
		UsageUnit   string
		TieredRates []struct {
			UnitPrice struct {
				CurrencyCode string
				Units        drover.Money `json:",string"`
				Nanos        drover.Money
			}
		}
	}

	from drover.Time // the effective time
}

// fetchSkus fetches the region's entries in the price list, for a period or the current ones.
func (c *cloud) fetchSkus(ctx context.Context, from, to string) ([]sku, error) {
	all, err := list(ctx, c.api, "skus.list", "", items[sku], "startTime", from, "endTime", to)
	return slices.DeleteFunc(all, func(s sku) bool { return s.Category == nil || !slices.Contains(s.ServiceRegions, c.config.Region) }), err
}

// priceListOf translates entries.
func priceListOf(skus []sku) (p priceList) {
	for _, m := range []*parts{&p.OnDemand, &p.Spot} {
		*m = parts{map[string]drover.Money{}, map[string]drover.Money{}, map[string]drover.Money{}}
	}
	p.Disk = map[string]drover.Money{}
	for _, s := range skus {
		switch s.Category.ResourceFamily + " " + s.Category.UsageType {
		case "Compute OnDemand":
			p.OnDemand.take(s)
		case "Compute Preemptible":
			p.Spot.take(s)
		case "Storage OnDemand":
			p.takeDisk(s)
		}
	}
	return p
}

// take records an entry, if it is about a part of an instance.
func (p parts) take(s sku) {
	price, unit := priceOf(s)
	if price <= 0 {
		return
	}
	part, _, _ := strings.Cut(strings.TrimPrefix(s.Description, "Spot Preemptible "), " running in ")
	part, _, _ = strings.Cut(part, " attached to Spot Preemptible ")
	switch series, what := partOf(part); {
	case what == "Core" && unit == "h":
		p.CPU[series] = max(p.CPU[series], price)
	case what == "Ram" && unit == "GiBy.h":
		p.Memory[series] = max(p.Memory[series], price)
	case what == "GPU" && unit == "h":
		p.GPU[gpuName(series)] = max(p.GPU[gpuName(series)], price)
	}
}

// priceOf returns the price of the first unit, and the unit; 0 if not in dollars.
func priceOf(s sku) (price drover.Money, unit string) {
	if len(s.PricingInfo) == 0 {
		return 0, ""
	}
	e := s.PricingInfo[0].PricingExpression
	for _, r := range e.TieredRates {
		if p := r.UnitPrice; p.CurrencyCode == "USD" || p.CurrencyCode == "" {
			price = max(price, p.Units*drover.Dollar+p.Nanos)
		}
	}
	return price, e.UsageUnit
}

// makers are words in an entry that do not identify the series.
var makers = map[string]bool{"AMD": true, "Arm": true, "Instance": true, "Predefined": true}

// unlike are the entries whose text does not begin with the series' name.
var unlike = map[string]string{"Compute optimized": "c2", "Memory-optimized": "m1", "M3 Memory-optimized": "m3"}

// partOf returns what an entry prices: "N2D AMD Instance Core" is a vCPU of n2d. It is empty for anything else, such as
// custom types and whole hosts.
func partOf(text string) (series, what string) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return "", ""
	}
	what, words = words[len(words)-1], words[:len(words)-1]
	if what == "GPU" {
		return strings.Join(words, "-"), what
	}
	words = slices.DeleteFunc(words, func(w string) bool { return makers[w] })
	if series, ok := unlike[strings.Join(words, " ")]; ok {
		return series, what
	}
	if len(words) != 1 {
		return "", ""
	}
	return strings.ToLower(words[0]), what
}

// gpuName normalizes a GPU's names in types and in the price list: nvidia-tesla-a100 and Nvidia Tesla A100.
func gpuName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == ' ' })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "tesla" })
	slices.Sort(words)
	return strings.Join(words, "-")
}

// Google's price list includes past prices: for a requested period, each entry contains the prices in force and when
// they began. The period must be in the past, and within one month of Los Angeles time: see the price list's page.

// mostMonths is how many months before the current one are read. Before that, the first price applies.
const mostMonths = 3

// historyTime limits the wait for the history: a starting controller can work without it.
const historyTime = 20 * time.Second

// dated is a price list and the time from which it applies.
type dated struct {
	from   drover.Time
	prices priceList
}

// PriceHistory returns the price list's history, which is the same in all zones. For configured types, and if Google
// has none, it is the listed price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	now, err := driver.ListedPrice(ctx, c, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
	if err != nil || kit.IsStatic(c.config.Types, providerType) {
		return now, err
	}
	types, err := c.types.Get(ctx)
	var past []dated
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, historyTime)
		defer cancel()
		past, err = c.past(ctx, since)
	}
	if err != nil {
		return nil, errs.Classify("list past prices", err)
	}
	var all []driver.PricePoint
	for _, p := range past {
		if price, ok := p.prices.of(providerType, types[providerType], m); ok {
			all = append(all, driver.PricePoint{From: p.from, Price: price})
		}
	}
	if len(all) == 0 {
		return now, nil
	}
	return driver.PricesSince(driver.SortPrices(all), since), nil
}

// past returns the price lists since a time, including the one in force then.
func (c *cloud) past(ctx context.Context, since drover.Time) (all []dated, err error) {
	now := time.Now().UTC()
	month := monthOf(now.AddDate(0, -mostMonths, 0))
	if since > drover.TimeOf(month) {
		month = monthOf(since.Std().UTC())
	}
	for month.Before(now) {
		next := monthOf(month.AddDate(0, 1, 7)) // any day of it
		end, name := next, month.Format("2006-01")
		if now.Before(next) { // cached for the current hour only
			end, name = now.Add(-time.Minute), fmt.Sprint(name, now.Unix()/3600)
		}
		if !month.Before(end) {
			break
		}
		some, err := c.months.Get(ctx, name, func() ([]dated, error) { return c.fetchPast(ctx, month, end) })
		if err != nil {
			return nil, err
		}
		all, month = append(all, some...), next
	}
	return all, nil
}

// monthOf returns the beginning of a time's month in Los Angeles: at eight o'clock UTC or, in summer time, at seven.
func monthOf(at time.Time) time.Time {
	begin := func(year int, month time.Month) time.Time {
		hour := 8
		if time.April <= month && month <= time.November {
			hour = 7
		}
		return time.Date(year, month, 1, hour, 0, 0, 0, time.UTC)
	}
	if this := begin(at.Year(), at.Month()); !at.Before(this) {
		return this
	}
	last := time.Date(at.Year(), at.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	return begin(last.Year(), last.Month())
}

// fetchPast fetches the price lists of a period: one for each moment at which an entry of the region changed.
func (c *cloud) fetchPast(ctx context.Context, from, to time.Time) (all []dated, err error) {
	skus, err := c.fetchSkus(ctx, from.Format(time.RFC3339), to.Format(time.RFC3339))
	if err != nil {
		return nil, err
	}
	moments := map[drover.Time]bool{}
	for _, s := range skus {
		for i, info := range s.PricingInfo {
			at := kit.ReadTime(info.EffectiveTime)
			if at == 0 {
				return nil, drover.Errorf(drover.KindTransient, "the price list: a price for %s begins at %.40q, which is not a time", s.Description, info.EffectiveTime)
			}
			s.PricingInfo[i].from, moments[at] = at, true
		}
	}
	for at := range moments {
		all = append(all, dated{at, priceListOf(asOf(skus, at))})
	}
	slices.SortFunc(all, func(a, b dated) int { return cmp.Compare(a.from, b.from) })
	return all, nil
}

// asOf returns the entries with only the price in force at a moment; entries without a price then are left out.
func asOf(skus []sku, moment drover.Time) (all []sku) {
	for _, s := range skus {
		held := slices.DeleteFunc(slices.Clone(s.PricingInfo), func(p pricing) bool { return p.from > moment })
		if len(held) > 0 {
			s.PricingInfo = []pricing{slices.MaxFunc(held, func(a, b pricing) int { return cmp.Compare(a.from, b.from) })}
			all = append(all, s)
		}
	}
	return all
}
