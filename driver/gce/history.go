package gce

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/api/cloudbilling/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// What Google remembers of prices is in its price list: asked for a stretch of time, each entry tells the prices that held in it, and from when. The stretch
// has to lie in the past, and within one month as Los Angeles has it: see the price list's page.

// mostMonths is how many months are asked for beside the present one, at most. What was rented before costs what it did at the beginning of the first of them.
const mostMonths = 3

// historyTime is how long the history is waited for: a controller that begins can do without.
const historyTime = 20 * time.Second

// dated is the price list as it was from a time on.
type dated struct {
	from   drover.Time
	prices priceList
}

// PriceHistory is the price list's, which is the same in all zones. Of types by hand, and where Google tells none, it is the listed price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	listed, err := c.Offerings(ctx)
	if err != nil {
		return nil, err
	}
	now, err := driver.ListedPrice(listed, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
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
		return nil, errs.Classify("list prices of the past", err)
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

// past is the price lists since a time, the one that held then among them.
func (c *cloud) past(ctx context.Context, since drover.Time) (all []dated, err error) {
	now := time.Now().UTC()
	month := monthOf(now.AddDate(0, -mostMonths, 0))
	if since > drover.TimeOf(month) {
		month = monthOf(since.Std().UTC())
	}
	for month.Before(now) {
		next := monthOf(month.AddDate(0, 1, 7)) // some day of it
		end, name := next, month.Format("2006-01")
		if now.Before(next) { // it is told anew each hour
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

// monthOf is when the month began that a moment is in, as Los Angeles has it: at eight o'clock of UTC or, in summer time, at seven.
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

// fetchPast asks for the price lists of a stretch of time: one for each moment at which an entry of the region's changed.
func (c *cloud) fetchPast(ctx context.Context, from, to time.Time) (all []dated, err error) {
	skus, err := c.fetchSkus(ctx, from, to)
	if err != nil {
		return nil, err
	}
	moments, begins := map[drover.Time]bool{}, map[*cloudbilling.PricingInfo]drover.Time{}
	for _, sku := range skus {
		for _, info := range sku.PricingInfo {
			at, err := time.Parse(time.RFC3339, info.EffectiveTime)
			if err != nil {
				return nil, drover.Errorf(drover.KindTransient, "the price list says of %s that a price holds from %.40q on", sku.Description, info.EffectiveTime)
			}
			begins[info] = drover.TimeOf(at)
			moments[begins[info]] = true
		}
	}
	for at := range moments {
		all = append(all, dated{at, priceListOf(asOf(skus, begins, at))})
	}
	slices.SortFunc(all, func(a, b dated) int { return cmp.Compare(a.from, b.from) })
	return all, nil
}

// asOf is the entries with the price alone that held at a moment, by when each begins; those that had none yet are left out.
func asOf(skus []*cloudbilling.Sku, begins map[*cloudbilling.PricingInfo]drover.Time, moment drover.Time) (all []*cloudbilling.Sku) {
	for _, sku := range skus {
		one, last := *sku, drover.Time(0)
		one.PricingInfo = nil
		for _, info := range sku.PricingInfo {
			if from := begins[info]; from <= moment && from >= last {
				one.PricingInfo, last = []*cloudbilling.PricingInfo{info}, from
			}
		}
		if len(one.PricingInfo) > 0 {
			all = append(all, &one)
		}
	}
	return all
}
