package azure

import (
	"cmp"
	"context"
	"encoding/json"
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
	"drover/driver/kit"
)

// pricesURL is the price list, which anybody may read: see "Azure Retail Prices overview" in Microsoft's reference of Cost Management.
const pricesURL = "https://prices.azure.com/api/retail/prices"

// maxAnswer bounds a page of the price list; one has up to a thousand prices, of some 700 bytes each.
const maxAnswer = 16 << 20

// notLinux is in the names of products that are other systems on the same types.
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

// readPrices reads that part of the price list in the region, but for what is free or holds later.
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

// enter makes a price a type's: of several the one that holds since last, and of those the highest. Windows, Azure's own clusters and what is
// sold otherwise than by the hour are passed over.
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

// pricePage reads a page. The list names the next one, which has to be its own.
func (c *cloud) pricePage(ctx context.Context, address string) (page pricePage, err error) {
	if !strings.HasPrefix(address, pricesURL+"?") {
		return page, fmt.Errorf("the price list goes on at %.200q, which is not it", address)
	}
	err = c.api.call(ctx, "ListPrices", func() error {
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
		return json.NewDecoder(io.LimitReader(reply.Body, maxAnswer)).Decode(&page)
	})
	return page, err
}
