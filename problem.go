package drover

import (
	"slices"
	"strings"
)

// Shape is what matters of a job when a place for it is sought. Jobs of one shape are interchangeable.
type Shape struct {
	Need      Resources  `json:"need"`
	Placement Placement  `json:"placement"`
	Spot      SpotPolicy `json:"spot"`
}

// Accepts reports whether jobs of this shape may run on what the offering gives, when it is empty.
func (s Shape) Accepts(o Offering) bool {
	return s.Placement.Allows(o.Cloud, o.Zone, o.Type.Name) && s.Spot.Allows(o.Market) && s.room(o).Fits(s.Need)
}

// Refuses says why a job of this shape cannot run on the offering, in a few words; empty when it can.
func (s Shape) Refuses(o Offering) string {
	switch {
	case !s.Placement.Allows(o.Cloud, o.Zone, o.Type.Name):
		return "placement asks for another"
	case !s.Spot.Allows(o.Market):
		return "market " + string(o.Market) + " not wanted"
	}
	return s.room(o).Lacks(s.Need)
}

// room is what an instance of the offering would have for the shape.
func (s Shape) room(o Offering) Resources {
	r := o.Type.Resources
	if r.Disk == 0 {
		r.Disk = s.Need.Disk // the volume is made as large as the work asks
	}
	return r
}

// NearestMiss says why none of the offerings can hold the shape, empty if one can. It names the offering that passes most of the checks
// and, among those that fail at the same one, has most of what is lacking.
func (s Shape) NearestMiss(offerings []Offering) string {
	miss, best, most := "there are no types", -1, int64(0)
	for _, o := range offerings {
		why := s.Refuses(o)
		if why == "" {
			return ""
		}
		near := nearness(why)
		has := amounts(o.Type.Resources)[near]
		if near < best || near == best && has <= most {
			continue
		}
		best, most = near, has
		miss = o.Type.Name + " in " + o.Cloud + ": " + why
		if near >= nearness("vcpus") {
			miss = o.Type.Name + " in " + o.Cloud + " has not enough " + why
		}
	}
	return miss
}

// checks are what Refuses looks at, in its order, by the words that its answers begin with.
var checks = [...]string{"placement", "market", "arch", "vcpus", "memory", "disk", "gpus"}

// nearness is the place of a refusal among the checks: the later it comes, the more fits.
func nearness(why string) int {
	return slices.IndexFunc(checks[:], func(check string) bool { return strings.HasPrefix(why, check) })
}

// amounts is how much there is of what each check looks at, 0 where that is no amount.
func amounts(r Resources) [len(checks)]int64 {
	return [...]int64{0, 0, 0, int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs)}
}

// Problem asks which instances to rent for work that has no place. It is a value: its answer depends on nothing else.
type Problem struct {
	ID        int64       `json:"id"`
	Demands   []Demand    `json:"demands"`            // in the order in which they are served
	Offerings []Offering  `json:"offerings"`          // what may be rented now, unblocked, sorted by cloud, type, zone, market
	Room      int         `json:"room"`               // instances that may be added in all
	Clouds    []CloudRoom `json:"clouds"`             // and in each cloud
	UseOnce   bool        `json:"use_once,omitempty"` // an instance is given one job
	Steps     int         `json:"steps"`              // the most units of work to spend on the answer
}

// Demand is a number of jobs of one shape.
type Demand struct {
	Shape Shape `json:"shape"`
	Count int   `json:"count"`
}

// CloudRoom is how many instances may be added in a cloud.
type CloudRoom struct {
	Cloud string `json:"cloud"`
	Room  int    `json:"room"`
}

// Plan answers a Problem.
type Plan struct {
	Problem   int64      `json:"problem"`
	Purchases []Purchase `json:"purchases"`
	Unmet     []Unmet    `json:"unmet,omitempty"` // demands that are not wholly served, and why
}

// Purchase is one instance to rent.
type Purchase struct {
	Candidates []int  `json:"candidates"` // indexes of offerings, cheapest first, all able to hold Loads
	Loads      []Load `json:"loads"`
}

// Load is how many jobs of a demand an instance is rented for.
type Load struct {
	Demand int `json:"demand"` // index
	Count  int `json:"count"`
}

// Unmet says how many jobs of a demand found no place in the plan, and why.
type Unmet struct {
	Demand int    `json:"demand"`
	Count  int    `json:"count"`
	Code   string `json:"code"` // ReasonLimit or ReasonBlocked
	Text   string `json:"text"`
}
