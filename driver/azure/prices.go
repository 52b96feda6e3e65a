package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"drover"
	"drover/driver"
)

// pricesURL is the price list, which anybody may read: see "Azure Retail Prices overview" in Microsoft's reference of Cost Management.
const pricesURL = "https://prices.azure.com/api/retail/prices"

// maxAnswer bounds a page of the price list; one has up to a thousand prices, of some 700 bytes each.
const maxAnswer = 16 << 20

// priceInfo is what is kept of a type's prices, by the hour; 0: it has none.
type priceInfo struct {
	OnDemand drover.Money `json:"on_demand,omitempty"`
	Spot     drover.Money `json:"spot,omitempty"`
}

func (p priceInfo) of(m drover.Market) drover.Money {
	if m == drover.Spot {
		return p.Spot
	}
	return p.OnDemand
}

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
func (c *cloud) fetchPrices(ctx context.Context) (map[string]priceInfo, error) {
	all, since := map[string]priceInfo{}, map[string]time.Time{}
	return all, c.readPrices(ctx, "serviceName eq 'Virtual Machines'", func(i priceItem) { i.enter(all, since, time.Now()) })
}

// readPrices reads that part of the price list in the region.
func (c *cloud) readPrices(ctx context.Context, which string, take func(priceItem)) error {
	query := url.Values{"api-version": {"2023-01-01-preview"}, "currencyCode": {"USD"}, "$filter": {fmt.Sprintf(
		"%s and priceType eq 'Consumption' and armRegionName eq '%s'", which, c.config.Location)}}
	items, err := driver.Collect(func(next string) ([]priceItem, string, error) {
		page, err := c.pricePage(ctx, cmp.Or(next, pricesURL+"?"+query.Encode()))
		return page.Items, page.NextPageLink, err
	})
	for _, item := range items {
		take(item)
	}
	return err
}

// enter makes a price a type's: of several the one that holds since last, and of those the highest. Windows, Azure's own clusters and what is
// sold otherwise than by the hour are passed over.
func (i priceItem) enter(all map[string]priceInfo, since map[string]time.Time, now time.Time) {
	spot := strings.HasSuffix(i.SKU, " Spot")
	switch {
	case i.Type == "", i.Unit != "1 Hour", i.Price <= 0, i.From.After(now):
		return
	case strings.Contains(i.Product, "Windows"), strings.Contains(i.Product, "Cloud Services"), strings.Contains(i.Product, "CloudServices"), strings.HasSuffix(i.SKU, " Low Priority"):
		return
	}
	price, err := dollars(i.Price)
	key := fmt.Sprint(i.Type, spot)
	p := all[i.Type]
	if err != nil || i.From.Before(since[key]) || i.From.Equal(since[key]) && price <= p.of(market(spot)) {
		return
	}
	if spot {
		p.Spot = price
	} else {
		p.OnDemand = price
	}
	all[i.Type], since[key] = p, i.From
}

func dollars(amount float64) (drover.Money, error) {
	return drover.ParseMoney(strconv.FormatFloat(amount, 'f', 9, 64))
}

func market(spot bool) drover.Market {
	if spot {
		return drover.Spot
	}
	return drover.OnDemand
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
