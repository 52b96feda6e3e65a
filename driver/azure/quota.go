package azure

import (
	"context"
	"strings"

	"drover"
	"drover/driver"
	"drover/internal/logkey"
)

// spotQuota is the one quota of all spot instances of a region.
const spotQuota = "lowPriorityCores"

// quotaGroup names the quota under which a type counts in a market: its family's, in the words of the usages API, or that of all spot.
func quotaGroup(family string, m drover.Market) string {
	if m == drover.Spot {
		return spotQuota
	}
	return family
}

// fetchLimits asks how many vCPUs each quota allows, by its name in small letters: Azure does not write it in one way. If it cannot be asked,
// nothing is known for as long as an answer would be good, so that a create does not ask each time.
func (c *cloud) fetchLimits(ctx context.Context) (map[string]int64, error) {
	found, err := c.api.listQuotas(ctx)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		c.o.Log.Warn("the quotas cannot be read, and Azure itself will say what is beyond them", logkey.Error, err)
	}
	all := map[string]int64{}
	for _, u := range found {
		if u.Name != nil {
			all[strings.ToLower(value(u.Name.Value))] = value(u.Limit)
		}
	}
	return all, nil
}

// allowed refuses a candidate that alone is larger than its whole quota, as most families of a new subscription are: no call has to be made to
// know that. Whatever cannot be asked about is allowed, since Azure will say.
func (c *cloud) allowed(ctx context.Context, candidate driver.Candidate) error {
	if !c.config.ListTypes {
		return nil
	}
	types, err := c.types.Get(ctx)
	t, known := types[candidate.ProviderType]
	if err != nil || !known {
		return nil
	}
	limits, err := c.limits.Get(ctx)
	group := quotaGroup(t.Family, candidate.Market)
	limit, known := limits[strings.ToLower(group)]
	if err != nil || !known || limit < 0 || t.Cores <= limit {
		return nil
	}
	return &drover.Error{
		Kind: drover.KindQuota, Scope: drover.ScopeQuotaGroup, Market: candidate.Market, Hint: errs.Hints[drover.KindQuota],
		Message: "a " + candidate.ProviderType + " has more vCPUs than the whole quota of " + group + " allows",
	}
}
