package azure

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/logkey"
)

// The maximum ages of the cached data from which offerings are made.
const (
	typesAge  = 24 * time.Hour
	pricesAge = 6 * time.Hour
	limitsAge = 10 * time.Minute
	spotsAge  = time.Hour
)

// typeInfo is the cached part of an instance type.
type typeInfo struct {
	Resources    drover.Resources `json:"resources"`
	Zones        []string         `json:"zones"`            // the zones that the subscription may use; the region's name if the type is in no zone
	Family       string           `json:"family"`           // its quota
	Cores        int64            `json:"cores"`            // how many vCPUs count against the quota
	Spot         bool             `json:"spot,omitempty"`   // whether it is sold on the spot market
	Generations  string           `json:"generations"`      // of virtual hardware, such as V1,V2
	Confidential bool             `json:"sealed,omitempty"` // runs only images for confidential computing
}

// Offerings are Azure's types with a price in the zones that have them, and the configured types.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	var types map[string]typeInfo
	var prices priceList
	var disks map[string]drover.Money
	if c.config.ListTypes && ctx.Err() == nil {
		var typesErr, pricesErr, disksErr error
		prices, pricesErr = c.prices.Get(ctx)
		types, typesErr = c.types.Get(ctx)
		disks, disksErr = c.disks.Get(ctx)
		if err := errors.Join(typesErr, pricesErr, disksErr); err != nil {
			return nil, errs.Classify("list types and prices", err)
		}
	}
	spots := c.knownSpots(ctx)
	return c.config.Offerings(ctx, kit.Catalogue{
		Cloud: c.o.Name, Zones: c.zonesByHand(types), Keys: c.config.MarketKeys,
		Own: func(context.Context) ([]kit.Own, error) { return c.listed(types, prices), nil },
		Complete: func(o *drover.Offering) {
			c.addVolumes(o, disks)
			o.QuotaGroup = quotaGroup(types[o.Type.ProviderType].Family, o.Market)
			if o.Market == drover.Spot {
				o.Interruptions = spots[strings.ToLower(o.Type.ProviderType)].Evictions
			}
		},
	})
}

// zonesByHand returns the zones of configured types: the configured zones, otherwise all zones of any type, otherwise
// the region.
func (c *cloud) zonesByHand(known map[string]typeInfo) (zones []string) {
	if len(c.config.Zones) > 0 {
		return c.config.Zones
	}
	for _, t := range known {
		zones = append(zones, t.Zones...)
	}
	zones = slices.DeleteFunc(zones, func(zone string) bool { return zone == c.config.Location })
	if len(zones) == 0 {
		return []string{c.config.Location}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// listed returns Azure's own types.
func (c *cloud) listed(types map[string]typeInfo, prices priceList) (all []kit.Own) {
	for name, t := range types {
		if t.Confidential || !strings.Contains(t.Generations, "V"+strconv.Itoa(c.config.Generation)) {
			continue
		}
		all = append(all, kit.Own{Name: name, Resources: t.Resources, Zones: c.zonesOf(t), Price: func(_ string, m drover.Market) (drover.Money, bool) {
			price := prices[name][m]
			return price, price > 0 && (m == drover.OnDemand || t.Spot)
		}})
	}
	return all
}

// zonesOf returns the zones in which a type is offered. If no zones are configured, every type in the region is
// offered.
func (c *cloud) zonesOf(t typeInfo) []string {
	if len(c.config.Zones) == 0 {
		return t.Zones
	}
	var zones []string
	for _, zone := range c.config.Zones {
		if zone == c.config.Location || slices.Contains(t.Zones, zone) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// fetchTypes fetches the types of the region.
func (c *cloud) fetchTypes(ctx context.Context) (map[string]typeInfo, error) {
	found, err := list[sku](ctx, c.api, "ListTypes")
	if err != nil {
		return nil, err
	}
	all := map[string]typeInfo{}
	for _, s := range found {
		if t, ok := c.typeOf(s); ok && s.ResourceType == "virtualMachines" {
			all[s.Name] = t
		}
	}
	return all, nil
}

// sku is what the driver reads from a type.
type sku struct {
	Name, ResourceType, Family string
	Capabilities               []struct{ Name, Value string }
	LocationInfo               []struct {
		Location string
		Zones    []string
	}
	Restrictions []struct {
		Type            string
		RestrictionInfo struct{ Zones []string }
	}
}

// typeOf translates a type, if the subscription may use it and its architecture is known. It has no disk: the volume is
// as large as requested.
func (c *cloud) typeOf(s sku) (t typeInfo, ok bool) {
	has := map[string]string{}
	for _, one := range s.Capabilities {
		has[one.Name] = one.Value
	}
	cores, _ := strconv.ParseInt(has["vCPUs"], 10, 64)
	usable, err := strconv.ParseInt(has["vCPUsAvailable"], 10, 64) // set for types with some of their vCPUs disabled
	if err != nil {
		usable = cores
	}
	gib, _ := strconv.ParseFloat(has["MemoryGB"], 64)
	gpus, _ := strconv.Atoi(has["GPUs"])
	t = typeInfo{
		Resources: drover.Resources{
			CPU: drover.MilliCPU(usable) * 1000, Memory: drover.Bytes(gib * float64(drover.GiB)), GPUs: gpus,
			Arch: map[string]drover.Arch{"x64": "amd64", "Arm64": "arm64"}[has["CpuArchitectureType"]],
		},
		Zones: c.zonesIn(s), Family: s.Family, Cores: cores, Spot: has["LowPriorityCapable"] == "True",
		Generations: has["HyperVGenerations"], Confidential: has["ConfidentialComputingType"] != "",
	}
	return t, t.Resources.Arch != "" && cores > 0 && t.Resources.Memory > 0 && len(t.Zones) > 0
}

// zonesIn returns the zones in which the subscription may use a type.
func (c *cloud) zonesIn(s sku) (zones []string) {
	for _, in := range s.LocationInfo {
		if strings.EqualFold(in.Location, c.config.Location) {
			for _, zone := range in.Zones {
				zones = append(zones, c.config.Location+"-"+zone)
			}
		}
	}
	if len(zones) == 0 {
		zones = []string{c.config.Location}
	}
	for _, r := range s.Restrictions {
		if r.Type == "Location" {
			return nil
		}
		for _, zone := range r.RestrictionInfo.Zones {
			zones = slices.DeleteFunc(zones, func(z string) bool { return z == c.config.Location+"-"+zone })
		}
	}
	slices.Sort(zones)
	return zones
}

// spotQuota is the common quota of all spot instances in a region.
const spotQuota = "lowPriorityCores"

// quotaGroup returns the quota of a type in a market: its family's, as in the usages API, or the common spot quota.
func quotaGroup(family string, m drover.Market) string {
	if m == drover.Spot {
		return spotQuota
	}
	return family
}

// fetchLimits fetches how many vCPUs each quota allows, by its name in lower case, since Azure varies its spelling. If
// that fails, the empty result is cached as long as an answer would be, so that not every create call repeats it.
func (c *cloud) fetchLimits(ctx context.Context) (map[string]int64, error) {
	found, err := list[struct {
		Name  struct{ Value string }
		Limit int64
	}](ctx, c.api, "ListQuotas")
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		c.o.Log.Warn("the quotas cannot be read; Azure itself will reject requests that exceed them", logkey.Error, err)
	}
	all := map[string]int64{}
	for _, u := range found {
		all[strings.ToLower(u.Name.Value)] = u.Limit
	}
	return all, nil
}

// allowed refuses a candidate that alone exceeds its whole quota, as with most families in a new subscription. Unknown
// quotas allow everything, since Azure itself refuses what exceeds them.
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
		Message: "a " + candidate.ProviderType + " has more vCPUs than the total quota of " + group + " allows",
	}
}
