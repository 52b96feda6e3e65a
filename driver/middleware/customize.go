package middleware

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Custom is what a user adds to every instance of a cloud. In both texts {fleet}, {pool}, {name}, {zone} and {project}
// are replaced with the instance's.
type Custom struct {
	Template string // in the driver's own format; empty for none
	Init     string // a script that begins with #!, or, where instances have cloud-init, anything that it reads; empty for none
}

// customized is a Cloud that adds to create requests what the user configured.
type customized struct {
	driver.Cloud
	custom Custom
}

// Customize wraps a cloud so that every create request has the user's and the pool's additions, filled in; a pool's
// template replaces the cloud's. It returns KindInvalid for what the cloud cannot accept, so that this does not fail at
// the first create: a template for a driver that has none, or an init text of unknown format or too large.
func Customize(c driver.Cloud, custom Custom) (driver.Cloud, error) {
	can := c.Capabilities()
	if custom.Template != "" && !can.Template {
		return nil, drover.Errorf(drover.KindInvalid, "template: this driver does not support templates")
	}
	if err := kit.CheckInit(custom.Init, can.Init, can.MaxInit); err != nil {
		return nil, err
	}
	return &customized{c, custom}, nil
}

// Unwrap returns the cloud within.
func (c *customized) Unwrap() driver.Cloud { return c.Cloud }

// Capabilities are the cloud's, but with a text that contains the zone, one call tries only one candidate: a lack of
// capacity would otherwise block candidates in other zones, which Create leaves out.
func (c *customized) Capabilities() driver.Capabilities {
	can := c.Cloud.Capabilities()
	can.ManyCandidates = can.ManyCandidates && !strings.Contains(c.custom.Template+c.custom.Init, "{zone}")
	return can
}

// Create fills in the texts. A text that contains the zone is right for one zone only, so Create then keeps only
// candidates in the first one's zone.
func (c *customized) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	if len(r.Candidates) == 0 {
		return c.Cloud.Create(ctx, r)
	}
	zone := r.Candidates[0].Zone
	template := cmp.Or(r.Template, c.custom.Template)
	if strings.Contains(template+c.custom.Init+r.PoolInit.Reveal(), "{zone}") {
		r.Candidates = slices.DeleteFunc(slices.Clone(r.Candidates), func(other driver.Candidate) bool { return other.Zone != zone })
	}
	fill := strings.NewReplacer("{fleet}", r.Tags[driver.TagFleet], "{pool}", r.Tags[driver.TagPool], "{name}", r.Name, "{zone}", zone,
		"{project}", c.Capabilities().Project)
	r.Template = fill.Replace(template)
	if c.custom.Init != "" {
		r.UserInit = drover.NewSecret(fill.Replace(c.custom.Init))
	}
	if text := r.PoolInit.Reveal(); text != "" {
		r.PoolInit = drover.NewSecret(fill.Replace(text))
	}
	return c.Cloud.Create(ctx, r)
}
