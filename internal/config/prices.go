package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// priceInterval is the default interval for listing a cloud's prices: spot prices change within hours, not minutes.
const priceInterval = 15 * time.Minute

// Prices are the prices paid in a cloud, where they differ from its list.
type Prices struct {
	Discount Percent       `yaml:"discount" doc:"a discount on the list prices, such as 12%"`
	Reserved []Reservation `yaml:"reserved" doc:"reservations: this many on-demand instances of a type have their own price"`
	Period   time.Duration `yaml:"billing_period" doc:"each period (at most 1h) that has begun is billed in full; idle instances stay until it ends, but no longer than idle_timeout; 0: the driver's period, usually a second"`
	Interval time.Duration `yaml:"interval" doc:"how often to ask the cloud for types and prices"`
}

// Default sets the defaults of prices.
func (p *Prices) Default() { *p = Prices{Interval: priceInterval} }

// Reservation is a commitment to a number of instances of a type.
type Reservation struct {
	Type  string       `yaml:"type,required" doc:"the instance type"`
	Count int          `yaml:"count,required" min:"1" max:"100000" doc:"how many instances have this price; others cost the list price"`
	Price drover.Money `yaml:"price,required" doc:"the hourly price of each"`
}

// Percent is a part of a whole, less than the whole, in hundredths of a percent.
type Percent int

const wholePercent Percent = 100_00

func (p *Percent) decodeWord(d *decoder, n *node) {
	text, hasSign := strings.CutSuffix(n.text, "%")
	part, err := drover.ParseMilliCPU(strings.TrimSpace(text)) // it parses a number in thousandths
	switch {
	case err != nil || part%10 != 0 || Percent(part/10) >= wholePercent:
		d.add(n, fmt.Sprintf("%s is not a percentage below 100%%", quote(n.text)), "write 12% or 7.5%")
	case !hasSign && part != 0:
		d.add(n, fmt.Sprintf("%s has no unit", quote(n.text)), fmt.Sprintf("for a percentage write %s%%", text))
	default:
		*p = Percent(part / 10)
	}
}

func (Percent) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "integer"}, Pattern: `^(0|[0-9]{1,2}(\.[0-9]{1,2})?%)$`}
}

// String returns the percentage in its written form, such as "7.5%".
func (p Percent) String() string { return strconv.FormatFloat(float64(p)/100, 'f', -1, 64) + "%" }

// Offer returns a listed offering at its actual price, with the root volume of each instance, and why it may not be
// used, if so. The type filter applies to the price without the volume.
func (c Cloud) Offer(listed drover.Offering) (paid drover.Offering, whyNot string) {
	for _, price := range []*drover.Money{&listed.Price, &listed.DiskPrice} {
		*price = price.Part(int64(wholePercent-c.Prices.Discount), int64(wholePercent))
	}
	whyNot = c.Types.Refuses(listed.Type.Name, listed.Price)
	return listed.WithVolume(cmp.Or(listed.Type.Resources.Disk, c.Disk)), whyNot
}

// checkPrices checks a cloud's prices against each other.
func checkPrices(f *faults, n *node, p Prices) {
	if p.Interval < time.Minute && n.shape == mapping {
		f.addf(n.find("interval"), "interval (%v) must be at least 1m, to avoid overloading the cloud", p.Interval)
	}
	if p.Period < 0 || p.Period > drover.MaxBillingPeriod {
		f.addf(n.find("billing_period"), "billing_period (%v) must be at most %v", p.Period, drover.MaxBillingPeriod)
	}
	seen := map[string]bool{}
	for i, r := range p.Reserved {
		at := n.find("reserved", strconv.Itoa(i), "type")
		if seen[r.Type] && r.Type != "" {
			f.add(at, fmt.Sprintf("%s is reserved twice", quote(r.Type)), "write one entry with the sum of both counts")
		}
		seen[r.Type] = true
	}
}
