package gce

import (
	"slices"
	"strings"

	"drover"
)

// family is series of types that share a quota of vCPUs in a region. See "VM instance quotas" in Google's guide to Compute Engine:
// https://cloud.google.com/compute/resource-usage.
type family struct {
	metric string
	series []string
}

// families are shown in docs/clouds/gce.md. Any other series has a quota of its own, by the metric CPUS_PER_VM_FAMILY.
var families = []family{
	{"CPUS", []string{"e2", "f1", "g1", "n1"}},
	{"N2_CPUS", []string{"n2"}},
	{"N2D_CPUS", []string{"n2d"}},
	{"T2D_CPUS", []string{"t2d"}},
	{"T2A_CPUS", []string{"t2a"}},
	{"C2_CPUS", []string{"c2"}},
	{"C2D_CPUS", []string{"c2d"}},
	{"C3_CPUS", []string{"c3"}},
	{"M1_CPUS", []string{"m1"}},
	{"M2_CPUS", []string{"m2"}},
	{"M3_CPUS", []string{"m3"}},
	{"A2_CPUS", []string{"a2"}},
}

const (
	spotMetric  = "PREEMPTIBLE_CPUS" // of every series
	otherMetric = "CPUS_PER_VM_FAMILY"
)

// quotaGroup names the quota under which a type counts in a market.
func quotaGroup(providerType string, m drover.Market) string {
	if m == drover.Spot {
		return spotMetric
	}
	series := seriesOf(providerType)
	for _, f := range families {
		if slices.Contains(f.series, series) {
			return f.metric
		}
	}
	return otherMetric + " " + strings.ToUpper(series)
}

// seriesOf is what stands before the first dash: n2d of n2d-standard-4.
func seriesOf(providerType string) string {
	series, _, _ := strings.Cut(providerType, "-")
	return series
}
