package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/logkey"
)

// pricesURL is the public price list: see "Azure Retail Prices overview" in Microsoft's reference of Cost Management.
const pricesURL = "https://prices.azure.com/api/retail/prices"

// maxAnswer limits the size of a page of the price list; a page has up to a thousand prices of about 700 bytes.
const maxAnswer = 16 << 20

// notLinux are parts of the names of products that are other systems for the same types.
var notLinux = []string{"Windows", "Cloud Services", "CloudServices"}

// priceList is hourly prices by type and market.
type priceList map[string]map[drover.Market]drover.Money

// pricePage is a page of the price list.
type pricePage struct {
	Items        []priceItem `json:"Items"`
	NextPageLink string      `json:"NextPageLink"`
}

// priceItem is a price.
type priceItem struct {
	Type    string    `json:"armSkuName"`
	Product string    `json:"productName"`
	SKU     string    `json:"skuName"`
	Unit    string    `json:"unitOfMeasure"`
	Price   float64   `json:"retailPrice"`
	From    time.Time `json:"effectiveStartDate"`
	Meter   string    `json:"meterName"`
}

// fetchPrices reads the price list of Linux in the region, in dollars.
func (c *cloud) fetchPrices(ctx context.Context) (priceList, error) {
	all, since := priceList{}, map[string]time.Time{}
	return all, c.readPrices(ctx, "serviceName eq 'Virtual Machines'", func(i priceItem, price drover.Money) { i.enter(all, since, price) })
}

// readPrices reads a part of the region's price list, without free items and future prices.
func (c *cloud) readPrices(ctx context.Context, which string, take func(priceItem, drover.Money)) error {
	query := url.Values{"api-version": {"2023-01-01-preview"}, "currencyCode": {"USD"}, "$filter": {fmt.Sprintf(
		"%s and priceType eq 'Consumption' and armRegionName eq '%s'", which, c.config.Location)}}
	items, err := kit.Collect(func(next string) ([]priceItem, string, error) {
		page, err := c.pricePage(ctx, cmp.Or(next, pricesURL+"?"+query.Encode()))
		return page.Items, page.NextPageLink, err
	})
	for _, item := range items {
		price, err := dollars(item.Price)
		if err == nil && price > 0 && !item.From.After(time.Now()) {
			take(item, price)
		}
	}
	return err
}

func dollars(amount float64) (drover.Money, error) {
	return drover.ParseMoney(strconv.FormatFloat(amount, 'f', 9, 64))
}

// enter records a type's price: of several, the one that came into force last, and of those the highest. It skips
// Windows, Azure's own clusters, and anything not sold by the hour.
func (i priceItem) enter(all priceList, since map[string]time.Time, price drover.Money) {
	if i.Type == "" || i.Unit != "1 Hour" || strings.HasSuffix(i.SKU, " Low Priority") || slices.ContainsFunc(notLinux, func(name string) bool { return strings.Contains(i.Product, name) }) {
		return
	}
	market := drover.OnDemand
	if strings.HasSuffix(i.SKU, " Spot") {
		market = drover.Spot
	}
	key := i.Type + " " + string(market)
	if i.From.Before(since[key]) || i.From.Equal(since[key]) && price <= all[i.Type][market] {
		return
	}
	if all[i.Type] == nil {
		all[i.Type] = map[drover.Market]drover.Money{}
	}
	all[i.Type][market], since[key] = price, i.From
}

// pricePage reads a page. Each page contains the next one's address, which must be the price list's.
func (c *cloud) pricePage(ctx context.Context, address string) (page pricePage, err error) {
	if !strings.HasPrefix(address, pricesURL+"?") {
		return page, fmt.Errorf("the price list's next-page link, %.200q, does not point to the price list", address)
	}
	err = c.api.gate.Pass(ctx, "ListPrices", func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		reply, err := c.api.web.Do(request)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if !runtime.HasStatusCode(reply, http.StatusOK) {
			return runtime.NewResponseError(reply)
		}
		err = json.NewDecoder(io.LimitReader(reply.Body, maxAnswer)).Decode(&page)
		if err == nil && page.Items == nil {
			err = errors.New("the response contains no list of prices")
		}
		return err
	})
	return page, err
}

// spotsQuery queries Azure Resource Graph's history of a region's spot instances. A query that names a subscription
// gets none of it, so none is named. Not all columns may be dynamic, or the answer has no pages: see "Guidance for
// pagination" in Microsoft's pages about it.
const spotsQuery = `SpotResources
| where type in~ ('microsoft.compute/skuspotpricehistory/ostype/location', 'microsoft.compute/skuspotevictionrate/location')
| where location =~ '%s' and tostring(properties.osType) in~ ('', 'linux')
| project id, name = tostring(sku.name), evictions = tostring(properties.evictionRate), prices = properties.spotPrices
| order by id asc`

// Offerings does not depend on this answer, so the driver waits for it no longer than spotsTime, and does not repeat
// the query at once if no answer comes.
const (
	spotsTime  = 20 * time.Second
	spotsPause = 10 * time.Minute
)

// evictionRates are how many instances Azure evicts per million instance hours, by its own figure: the percentage
// evicted within an hour, over the last 28 days (see "Pricing and eviction history" in "Use Azure Spot Virtual
// Machines"). A range counts as its middle, and the open range as its beginning.
var evictionRates = map[string]int64{"0-5": 25_000, "5-10": 75_000, "10-15": 125_000, "15-20": 175_000, "20+": 200_000}

// spotInfo is the cached data about a type's spot instances.
type spotInfo struct {
	Prices    []driver.PricePoint `json:"prices,omitempty"`    // newest first
	Evictions int64               `json:"evictions,omitempty"` // per million hours
}

// spotRow is a row of the answer: a type's prices, or its eviction rate.
type spotRow struct {
	Name, Evictions string
	Prices          []struct {
		USD  json.Number `json:"priceUSD"`
		From string      `json:"effectiveDate"`
	}
}

// fetchSpots fetches all types of the region, by their names in lower case.
func (c *cloud) fetchSpots(ctx context.Context) (map[string]spotInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, spotsTime)
	defer cancel()
	rows, err := query[spotRow](ctx, c.api, fmt.Sprintf(spotsQuery, c.config.Location))
	if err == nil && len(rows) == 0 { // Azure omits rows that the credentials may not read
		err = drover.Errorf(drover.KindAuthentication, "these credentials cannot read any data about %s", c.config.Location).WithHint("%s", errs.Hints[drover.KindAuthentication])
	}
	all := map[string]spotInfo{}
	for _, row := range rows {
		name := strings.ToLower(row.Name)
		prices, failed := row.history()
		all[name] = spotInfo{append(all[name].Prices, prices...), max(all[name].Evictions, evictionRates[row.Evictions])}
		err = cmp.Or(err, failed)
	}
	return all, errs.Classify("query Azure Resource Graph about spot instances", err)
}

func (r spotRow) history() (all []driver.PricePoint, err error) {
	for _, p := range r.Prices {
		from, timeErr := time.Parse(time.RFC3339, p.From)
		if timeErr != nil {
			from, timeErr = time.Parse(time.RFC3339, p.From+"Z") // if it has no time zone
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

// knownSpots returns Azure's data on spot instances, if its own types are wanted on spot. It logs a failure once, and
// continues without the data.
func (c *cloud) knownSpots(ctx context.Context) map[string]spotInfo {
	if !c.config.ListTypes || !c.config.Wants(drover.Spot) {
		return nil
	}
	known, err := c.spots.Get(ctx)
	if err != nil && ctx.Err() == nil {
		c.noSpots.Do(func() {
			c.o.Log.Warn("interruption rates and past prices of spot instances are unknown, so list prices are used", logkey.Error, err)
		})
	}
	return known
}

// PriceHistory returns the spot market's history, which is the same in all zones. On demand, for configured types, and
// if Azure has no history, it is the listed price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	now, err := driver.ListedPrice(ctx, c, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
	if err != nil && drover.KindOf(err) != drover.KindNotFound {
		return nil, err
	}
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
			o := drover.Offering{Price: p.Price}
			c.addVolumes(&o, disks)
			all = append(all, driver.PricePoint{From: p.From, Price: o.Price})
		}
	}
	return all, nil
}
