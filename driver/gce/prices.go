package gce

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/cloudbilling/v1"

	"drover"
	"drover/driver/kit"
)

// priceList is what an hour of a part costs in the region: by series, of a vCPU and of a GiB of memory, and by kind, of a GPU and of a GiB of disk.
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

// of is the price of a type, if all its parts have one. Some types have prices of their own, under their name without dashes.
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
func (c *cloud) fetchPrices(ctx context.Context) (p priceList, err error) {
	skus, err := c.fetchSkus(ctx, time.Time{}, time.Time{})
	if err != nil {
		return p, err
	}
	return priceListOf(skus), nil
}

// fetchSkus is the entries of the price list that are of the region, as they were in a stretch of time, or as they are.
func (c *cloud) fetchSkus(ctx context.Context, from, to time.Time) ([]*cloudbilling.Sku, error) {
	return kit.Collect(func(token string) ([]*cloudbilling.Sku, string, error) {
		page, err := c.api.skus(ctx, from, to, token)
		if err != nil {
			return nil, "", err
		}
		ours := slices.DeleteFunc(page.Skus, func(sku *cloudbilling.Sku) bool {
			return sku.Category == nil || !slices.Contains(sku.ServiceRegions, c.config.Region)
		})
		return ours, page.NextPageToken, nil
	})
}

// priceListOf reads what entries say.
func priceListOf(skus []*cloudbilling.Sku) (p priceList) {
	for _, m := range []*parts{&p.OnDemand, &p.Spot} {
		*m = parts{map[string]drover.Money{}, map[string]drover.Money{}, map[string]drover.Money{}}
	}
	p.Disk = map[string]drover.Money{}
	for _, sku := range skus {
		switch sku.Category.ResourceFamily + " " + sku.Category.UsageType {
		case "Compute OnDemand":
			p.OnDemand.take(sku)
		case "Compute Preemptible":
			p.Spot.take(sku)
		case "Storage OnDemand":
			p.takeDisk(sku)
		}
	}
	return p
}

// take takes in an entry of the price list, if it is of a part of an instance.
func (p parts) take(sku *cloudbilling.Sku) {
	price, unit := priceOf(sku)
	if price <= 0 {
		return
	}
	part, _, _ := strings.Cut(strings.TrimPrefix(sku.Description, "Spot Preemptible "), " running in ")
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

// priceOf is what the first unit costs, and the unit; 0 if not in dollars.
func priceOf(sku *cloudbilling.Sku) (price drover.Money, unit string) {
	if len(sku.PricingInfo) == 0 || sku.PricingInfo[0].PricingExpression == nil {
		return 0, ""
	}
	e := sku.PricingInfo[0].PricingExpression
	for _, r := range e.TieredRates {
		if r.UnitPrice != nil && (r.UnitPrice.CurrencyCode == "USD" || r.UnitPrice.CurrencyCode == "") {
			price = max(price, drover.Money(r.UnitPrice.Units)*drover.Dollar+drover.Money(r.UnitPrice.Nanos))
		}
	}
	return price, e.UsageUnit
}

// makers are words in an entry that say nothing about the series.
var makers = map[string]bool{"AMD": true, "Arm": true, "Instance": true, "Predefined": true}

// unlike are the entries that do not begin with the series' name.
var unlike = map[string]string{"Compute optimized": "c2", "Memory-optimized": "m1", "M3 Memory-optimized": "m3"}

// partOf reads what an entry is about: "N2D AMD Instance Core" is a vCPU of n2d. Of what is anything else, such as custom types and whole hosts,
// it says nothing.
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

// gpuName brings the names of a GPU that types and price list have into one form: nvidia-tesla-a100 and Nvidia Tesla A100.
func gpuName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == ' ' })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "tesla" })
	slices.Sort(words)
	return strings.Join(words, "-")
}
