package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// priceList is hourly prices: on demand by type, and spot by type and zone.
type priceList struct {
	onDemand map[string]drover.Money
	spot     map[string]map[string]drover.Money
}

// of is the price of an offering, if it has one.
func (p priceList) of(name, zone string, m drover.Market) (price drover.Money, ok bool) {
	if m == drover.Spot {
		price, ok = p.spot[name][zone]
	} else {
		price, ok = p.onDemand[name]
	}
	return price, ok
}

// prices are all known prices. Spot prices are fetched only if they are wanted.
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
	match := func(field, value string) pricetypes.Filter {
		return pricetypes.Filter{Field: &field, Value: &value, Type: pricetypes.FilterTypeTermMatch}
	}
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), FormatVersion: aws.String("aws_v1"), Filters: []pricetypes.Filter{
		match("regionCode", c.api.config.Region), match("operatingSystem", "Linux"), match("tenancy", "Shared"),
		match("preInstalledSw", "NA"), match("capacitystatus", "Used"), match("marketoption", "OnDemand"),
	}}
	products, err := listAll[string](ctx, c.api, c.api.prices().GetProducts, in)
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
	history, err := c.spotHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{StartTime: aws.Time(time.Now())})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(history, func(a, b types.SpotPrice) int { return aws.ToTime(a.Timestamp).Compare(aws.ToTime(b.Timestamp)) })
	all := map[string]map[string]drover.Money{}
	for _, h := range history { // the last counts
		name := string(h.InstanceType)
		price, err := kit.ReadPrice(aws.ToString(h.SpotPrice))
		if err != nil {
			return nil, err
		}
		if all[name] == nil {
			all[name] = map[string]drover.Money{}
		}
		all[name][aws.ToString(h.AvailabilityZone)] = price
	}
	return all, nil
}

// spotHistory lists the spot prices of Linux since a moment, and those in force then.
func (c *cloud) spotHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput) ([]types.SpotPrice, error) {
	in.ProductDescriptions, in.MaxResults = []string{"Linux/UNIX"}, aws.Int32(1000)
	return listAll[types.SpotPrice](ctx, c.api, c.api.ec2().DescribeSpotPriceHistory, in)
}

// PriceHistory is that of the spot market; on demand there is one listed or configured price.
func (c *cloud) PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]driver.PricePoint, error) {
	if m != drover.Spot {
		return driver.ListedPrice(ctx, c, driver.Candidate{ProviderType: providerType, Zone: zone, Market: m}, since)
	}
	in := &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []types.InstanceType{types.InstanceType(providerType)}, AvailabilityZone: &zone}
	if since != 0 {
		in.StartTime = aws.Time(since.Std())
	}
	history, err := c.spotHistory(ctx, in)
	if err != nil {
		return nil, errs.Classify("list spot prices", err)
	}
	var all []driver.PricePoint
	for _, h := range history {
		price, err := kit.ReadPrice(aws.ToString(h.SpotPrice))
		if err != nil {
			return nil, errs.Classify("list spot prices", err)
		}
		o := drover.Offering{Price: price}
		c.addVolumes(&o)
		all = append(all, driver.PricePoint{From: drover.TimeOf(aws.ToTime(h.Timestamp)), Price: o.Price})
	}
	return driver.SortPrices(all), nil
}
