package gce

import (
	"drover/driver/kit"
)

// The groups of calls that have a quota in common, for a project in a region or, where they are of no region, in all: see
// https://cloud.google.com/compute/docs/api-rate-limits.
const (
	rateQueries = "queries"
	rateReads   = "reads"
	rateLists   = "lists"
	rateWaits   = "waits for operations"
	rateHeavy   = "aggregated lists"
	rateGlobal  = "global lists"
	rateSkus    = "price list"
)

// rates are such that no minute has more calls than a new project may make. Google once published 1,500 of a group; the 750 of those that are
// heavy are what others were given by default, and the 300 of the price list are on its page of quotas. What a project may make stands in its own list.
var rates = map[string]kit.Rate{
	rateQueries: {Burst: 540, PerSecond: 16},
	rateReads:   {Burst: 540, PerSecond: 16},
	rateLists:   {Burst: 540, PerSecond: 16},
	rateWaits:   {Burst: 150, PerSecond: 10},
	rateHeavy:   {Burst: 150, PerSecond: 10},
	rateGlobal:  {Burst: 540, PerSecond: 16},
	rateSkus:    {Burst: 180, PerSecond: 2},
}
