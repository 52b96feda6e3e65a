package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// priceList is hourly prices: on demand by type, and spot by type and zone.
type priceList struct {
	onDemand map[string]drover.Money
	spot     map[string]map[string]drover.Money
}

// of returns an offering's price, if it has one.
func (p priceList) of(name, zone string, m drover.Market) (price drover.Money, ok bool) {
	if m == drover.Spot {
		price, ok = p.spot[name][zone]
	} else {
		price, ok = p.onDemand[name]
	}
	return price, ok
}

// prices returns all known prices. It fetches spot prices only if they are wanted.
func (c *cloud) prices(ctx context.Context) (p priceList, err error) {
	if p.onDemand, err = c.listPrices.Get(ctx); err != nil || !c.config.Wants(drover.Spot) {
		return p, err
	}
	p.spot, err = c.spotPrices.Get(ctx)
	return p, err
}

// fetchPrices reads the price list: one document for each product that sells an hour of Linux on a shared host in the
// region on demand.
func (c *cloud) fetchPrices(ctx context.Context) (map[string]drover.Money, error) {
	match := func(field, value string) params { return params{"Field": field, "Value": value, "Type": "TERM_MATCH"} }
	in := params{"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": []params{
		match("regionCode", c.api.config.Region), match("operatingSystem", "Linux"), match("tenancy", "Shared"),
		match("preInstalledSw", "NA"), match("capacitystatus", "Used"), match("marketoption", "OnDemand"),
	}}
	products, err := listAll[string](ctx, c.api, "GetProducts", "PriceList", in)
	if err != nil {
		return nil, err
	}
	all := map[string]drover.Money{}
	for _, text := range products {
		name, price, err := product([]byte(text))
		if err != nil {
			return nil, err
		}
		if price > 0 {
			all[name] = price
		}
	}
	return all, nil
}

// product reads a document of the price list: its type and hourly price; 0 if it is not sold by the hour, or not in
// dollars. See "Reading the service price list file" in Amazon's guide to billing.
func product(text []byte) (name string, price drover.Money, err error) {
	var p struct {
		Product struct {
			Attributes struct {
				InstanceType string `json:"instanceType"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					Unit         string            `json:"unit"`
					PricePerUnit map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return "", 0, errors.New("the price list has an entry that is not a product")
	}
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			if amount := d.PricePerUnit["USD"]; d.Unit == "Hrs" && amount != "" {
				found, err := kit.ReadPrice(amount)
				if err != nil {
					return "", 0, err
				}
				price = max(price, found)
			}
		}
	}
	return p.Product.Attributes.InstanceType, price, nil
}

// fetchSpotPrices fetches the current spot prices, by type and zone.
func (c *cloud) fetchSpotPrices(ctx context.Context) (map[string]map[string]drover.Money, error) {
	history, err := c.spotHistory(ctx, drover.TimeOf(time.Now()), params{})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(history, func(a, b spotPrice) int { return a.From.Compare(b.From) })
	all := map[string]map[string]drover.Money{}
	for _, h := range history { // the last one counts
		price, err := kit.ReadPrice(h.Price)
		if err != nil {
			return nil, err
		}
		if all[h.Type] == nil {
			all[h.Type] = map[string]drover.Money{}
		}
		all[h.Type][h.Zone] = price
	}
	return all, nil
}

// spotPrice is what the driver reads from a spot price.
type spotPrice struct {
	Type  string    `xml:"instanceType"`
	Zone  string    `xml:"availabilityZone"`
	Price string    `xml:"spotPrice"`
	From  time.Time `xml:"timestamp"`
}

// spotHistory lists the spot prices of Linux since a time, including those in force then.
func (c *cloud) spotHistory(ctx context.Context, since drover.Time, in params) ([]spotPrice, error) {
	in["ProductDescriptions"], in["MaxResults"] = []string{"Linux/UNIX"}, 1000
	if since != 0 {
		in["StartTime"] = since.Std().UTC().Format("2006-01-02T15:04:05.999Z")
	}
	return listAll[spotPrice](ctx, c.api, "DescribeSpotPriceHistory", "spotPriceHistorySet>item", in)
}

// PriceHistory returns the spot market's history. On demand and for configured types, it is the listed price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	if m != drover.Spot || kit.IsStatic(c.config.Types, providerType) {
		return driver.ListedPrice(ctx, c, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
	}
	history, err := c.spotHistory(ctx, since, params{"InstanceTypes": []string{providerType}, "AvailabilityZone": zone})
	if err != nil {
		return nil, errs.Classify("list spot prices", err)
	}
	var all []driver.PricePoint
	for _, h := range history {
		price, err := kit.ReadPrice(h.Price)
		if err != nil {
			return nil, errs.Classify("list spot prices", err)
		}
		o := drover.Offering{Price: price}
		c.addVolumes(&o)
		all = append(all, driver.PricePoint{From: drover.TimeOf(h.From), Price: o.Price})
	}
	return driver.SortPrices(all), nil
}
