package ec2

import (
	"slices"
	"strings"

	"drover"
)

// family is types that share a quota of vCPUs. The codes are those of Service Quotas; see "Amazon EC2 instance type quotas" in Amazon's guide
// to instance types: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html.
type family struct {
	name     string
	series   []string // what the names of its types begin with: before the generation, or with it
	onDemand string   // the quota's code
	spot     string
}

// families are shown in docs/clouds/ec2.md. The first that has a type counts.
var families = []family{
	{"standard", []string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}, "L-1216C47A", "L-34B43A08"},
	{"f", []string{"f"}, "L-74FC7D96", "L-88CF9481"},
	{"g", []string{"g", "gr", "vt"}, "L-DB2E81BA", "L-3819A6DF"},
	{"p5", []string{"p5"}, "L-417A185B", "L-C4BD4855"}, // a quota of its own on spot alone
	{"p", []string{"p"}, "L-417A185B", "L-7212CCBC"},
	{"x", []string{"x"}, "L-7295265B", "L-E3A00192"},
	{"inf", []string{"inf"}, "L-1945791B", "L-B5D1601B"},
	{"trn", []string{"trn"}, "L-2C3B7624", "L-6B0D517C"},
	{"dl", []string{"dl"}, "L-6E869C2A", "L-85EED4F7"},
	{"hpc", []string{"hpc"}, "L-F7808C92", ""},
	{"u", []string{"u", "u-"}, "L-43DA4232", ""},
}

// quotaGroup names the quota under which a type counts in a market. A series that is not known has one of its own, by its name.
func quotaGroup(providerType string, m drover.Market) string {
	series := seriesOf(providerType)
	generation := providerType[:min(len(series)+1, len(providerType))]
	for _, f := range families {
		switch {
		case !slices.Contains(f.series, series) && !slices.Contains(f.series, generation):
		case m == drover.Spot && f.spot != "":
			return f.spot
		case m == drover.Spot:
			return f.name + "-spot"
		default:
			return f.onDemand
		}
	}
	return series + "-" + string(m)
}

// seriesOf is what stands before the generation: c of c7g.large, and u- of u-6tb1.metal.
func seriesOf(providerType string) string {
	return providerType[:max(0, strings.IndexAny(providerType+"0", "0123456789"))]
}
