package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/logkey"
)

// spotsQuery asks Azure Resource Graph what it remembers of a region's spot instances. Of these it tells nothing to a query that names a
// subscription, so none is named. Not all columns may be dynamic, or it has no pages: see "Guidance for pagination" in Microsoft's pages of it.
const spotsQuery = `SpotResources
| where type in~ ('microsoft.compute/skuspotpricehistory/ostype/location', 'microsoft.compute/skuspotevictionrate/location')
| where location =~ '%s' and tostring(properties.osType) in~ ('', 'linux')
| project id, name = tostring(sku.name), evictions = tostring(properties.evictionRate), prices = properties.spotPrices
| order by id asc`

// Offerings are told without its answer. So that is waited for no longer than spotsTime, and not asked for again at once if it does not come.
const (
	spotsTime  = 20 * time.Second
	spotsPause = 10 * time.Minute
)

// evictionRates are how many instances are taken back in a million hours of one, by what Azure says: the chance, in percent, that one is within an
// hour, as the last 28 days had it (see "Pricing and eviction history" of "Use Azure Spot Virtual Machines"). A range counts as its middle, and
// that without an end as its beginning.
var evictionRates = map[string]int64{"0-5": 25_000, "5-10": 75_000, "10-15": 125_000, "15-20": 175_000, "20+": 200_000}

// spotInfo is what is kept of a type's spot instances.
type spotInfo struct {
	Prices    []driver.PricePoint `json:"prices,omitempty"`    // newest first
	Evictions int64               `json:"evictions,omitempty"` // in a million hours
}

// spotRow is a row of the answer: a type's prices, or how often it is taken back.
type spotRow struct {
	Name      string `json:"name"`
	Evictions string `json:"evictions"`
	Prices    []struct {
		USD  json.Number `json:"priceUSD"`
		From string      `json:"effectiveDate"`
	} `json:"prices"`
}

// fetchSpots asks for all types of the region, by their names in small letters.
func (c *cloud) fetchSpots(ctx context.Context) (map[string]spotInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, spotsTime)
	defer cancel()
	var rows []spotRow
	err := c.api.query(ctx, fmt.Sprintf(spotsQuery, c.config.Location), &rows)
	if err == nil && len(rows) == 0 { // what the credentials may not read is not refused but missing
		err = drover.Errorf(drover.KindAuthentication, "nothing is to be seen of %s", c.config.Location).WithHint("%s", errs.Hints[drover.KindAuthentication])
	}
	all := map[string]spotInfo{}
	for _, row := range rows {
		name := strings.ToLower(row.Name)
		prices, failed := row.history()
		all[name] = spotInfo{append(all[name].Prices, prices...), max(all[name].Evictions, evictionRates[row.Evictions])}
		err = cmp.Or(err, failed)
	}
	return all, errs.Classify("ask Azure Resource Graph about spot instances", err)
}

func (r spotRow) history() (all []driver.PricePoint, err error) {
	for _, p := range r.Prices {
		from, timeErr := time.Parse(time.RFC3339, p.From)
		if timeErr != nil {
			from, timeErr = time.Parse(time.RFC3339, p.From+"Z") // where it names no zone
		}
		usd, numberErr := p.USD.Float64()
		price, moneyErr := dollars(usd)
		if err := errors.Join(timeErr, numberErr, moneyErr); err != nil {
			return nil, err
		}
		all = append(all, driver.PricePoint{From: drover.TimeOf(from), Price: price})
	}
	return driver.SortPrices(all), nil
}

// knownSpots is what is known of spot instances, if any are wanted of Azure's own types. All goes on if nothing is, which is said once.
func (c *cloud) knownSpots(ctx context.Context) map[string]spotInfo {
	if !c.config.ListTypes || !slices.Contains(c.config.Markets, drover.Spot) {
		return nil
	}
	known, err := c.spots.Get(ctx)
	if err != nil && ctx.Err() == nil {
		c.noSpots.Do(func() {
			c.o.Log.Warn("how often spot instances are taken back is not known, nor what they cost in the past: the listed price counts", logkey.Error, err)
		})
	}
	return known
}

// PriceHistory is that of the spot market, which is the same in all zones. On demand, of types by hand, and where Azure tells none, it is the
// listed price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	listed, err := c.Offerings(ctx)
	if err != nil {
		return nil, err
	}
	now, err := driver.ListedPrice(listed, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
	past := c.knownSpots(ctx)[strings.ToLower(providerType)].Prices
	if m != drover.Spot || kit.IsStatic(c.config.Types, providerType) || len(past) == 0 {
		return now, err
	}
	disks, err := c.disks.Get(ctx)
	if err != nil {
		return nil, errs.Classify("list prices of disks", err)
	}
	var all []driver.PricePoint
	for _, p := range driver.PricesSince(past, since) {
		if p.From <= drover.TimeOf(time.Now()) {
			all = append(all, driver.PricePoint{From: p.From, Price: c.withVolumes(drover.Offering{Price: p.Price}, disks).Price})
		}
	}
	return all, nil
}
