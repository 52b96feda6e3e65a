package drover

// Mix is how work that may run in any market is divided among the markets.
type Mix struct {
	OnDemand Part `json:"on_demand,omitzero" yaml:"on_demand" doc:"the minimum to run on demand"`
}

// Part is a part of a number: the first Base of it, and a percentage of the rest.
type Part struct {
	Base    int `json:"base,omitempty" yaml:"base" min:"0" max:"100000" doc:"at least this many"`
	Percent int `json:"percent,omitempty" yaml:"percent" min:"0" max:"100" doc:"plus this percentage of the rest"`
}

// Of returns the part of n, rounded up.
func (p Part) Of(n int) int {
	base := min(p.Base, n)
	return base + ((n-base)*p.Percent+99)/100
}
