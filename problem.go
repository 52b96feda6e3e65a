package drover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shape is what matters of a job when a place for it is sought. Jobs of one shape are interchangeable.
type Shape struct {
	Need      Resources  `json:"need"`
	Placement Placement  `json:"placement"`
	Spot      SpotPolicy `json:"spot"`
}

// Accepts reports whether jobs of this shape may run on what the offering gives, when it is empty.
func (s Shape) Accepts(o Offering) bool {
	return s.Placement.Allows(o.Cloud, o.Zone, o.Type.Name, o.Price) && s.Spot.Allows(o.Market) && s.room(o).Fits(s.Need)
}

// AtAnyPrice is the shape without what the instance may cost.
func (s Shape) AtAnyPrice() Shape {
	s.Placement.MaxPrice = 0
	return s
}

// Misfit is why a job of the shape cannot run on the offering; the zero Misfit when it can.
func (s Shape) Misfit(o Offering) Misfit {
	if m := s.Placement.misfit(o); m.Check != "" {
		return m
	}
	if !s.Spot.Allows(o.Market) {
		needs := OnDemand
		if s.Spot == SpotRequire {
			needs = Spot
		}
		return Misfit{Check: "market", Needs: string(needs), Has: string(o.Market)}
	}
	if m := s.room(o).Misfit(s.Need); m.Check != "" {
		return m
	}
	if most := s.Placement.MaxPrice; most != 0 && o.Price > most {
		return Misfit{Check: "price", Needs: most.String(), Has: o.Price.String()}
	}
	return Misfit{}
}

// room is what an instance of the offering would have for the shape.
func (s Shape) room(o Offering) Resources {
	r := o.Type.Resources
	if r.Disk == 0 {
		r.Disk = s.Need.Disk // the volume is made as large as the work asks
	}
	return r
}

// LeftOut is an offering that the configuration does not let be rented.
type LeftOut struct {
	Offering
	Why string // which key leaves it out
}

// NearestMiss says why none of the offerings can hold the shape, empty if one can. It names the cheapest of those left
// out that could. Without one it names the offering that passes most of the checks and, among those that fail at the
// same one, has most of what is lacking.
func (s Shape) NearestMiss(offerings []Offering, leftOut ...LeftOut) string {
	if slices.ContainsFunc(offerings, s.Accepts) {
		return "" // without the words
	}
	var able *LeftOut
	for i, o := range leftOut {
		if s.Accepts(o.Offering) && (able == nil || o.Price < able.Price) {
			able = &leftOut[i]
		}
	}
	if able != nil {
		return fmt.Sprintf("type %q of cloud %q would fit, but %s", able.Type.Name, able.Cloud, able.Why)
	}
	miss, best, most := "no instance types are offered", -1, int64(0)
	for _, o := range offerings {
		m := s.Misfit(o)
		near := slices.Index(checks[:], m.Check)
		has := o.Type.Resources.Amount(m.Check)
		if m.Check == "price" {
			has = -int64(o.Price)
		}
		if near < best || near == best && has <= most {
			continue
		}
		best, most, miss = near, has, m.of(o)
	}
	return miss
}

// Misfit is the check that an offering or an instance fails, what a job needs there, and what there is.
type Misfit struct {
	Check string // one of checks; empty: the job fits
	Needs string // "4 vCPUs", "in zone a"
	Has   string // "2"; empty for a placement
}

// checks are what a Misfit may be about, in the order in which they are made: the later one fails, the nearer the
// offering.
var checks = [...]string{"placement", "market", "arch", "vcpus", "memory", "disk", "gpus", "price"}

// String says why the job does not fit what was named before.
func (m Misfit) String() string {
	switch m.Check {
	case "placement":
		return "the job must run " + m.Needs
	case "price":
		return "it costs " + m.Has + " an hour, more than the job's max_price, " + m.Needs
	case "market", "arch":
		return "the job needs " + m.Needs
	}
	return "the job needs " + m.Needs + ", but it has " + m.Has
}

// of is the same in a sentence about the job, "it", that names the offering.
func (m Misfit) of(o Offering) string {
	switch offering := fmt.Sprintf("type %q of cloud %q", o.Type.Name, o.Cloud); m.Check {
	case "placement":
		return "it must run " + m.Needs + ", and the closest offering is " + o.Name()
	case "price":
		return offering + " would fit, but costs " + m.Has + " an hour, more than max_price, " + m.Needs
	case "market", "arch":
		return "it needs " + m.Needs + ", but " + offering + " is " + m.Has
	default:
		return "it needs " + m.Needs + ", but " + offering + " has " + m.Has
	}
}

// Amount is how much there is of what a check is about, 0 where that is no amount.
func (r Resources) Amount(check string) int64 {
	if at := slices.Index(checks[:], check); at >= 0 {
		return amounts(r)[at]
	}
	return 0
}

// amounts is how much there is of what each check looks at, 0 where that is no amount.
func amounts(r Resources) [len(checks)]int64 {
	return [...]int64{0, 0, 0, int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs), 0}
}

// Affords reports whether the offering costs no more than jobs of the demand may.
func (d Demand) Affords(o Offering) bool {
	return (d.Dearest == 0 || o.Price <= d.Dearest) && (d.VCPU == 0 || o.VCPUPrice() <= d.VCPU)
}

// Problem asks which instances to rent for work that has no place. It is a value: its answer depends on nothing else.
//
// What is to be least is the cost of the work: for each instance its price for as long as it boots and the longest of
// its jobs is expected to take, an hour where that is not known, and what each instance costs beside its price.
type Problem struct {
	ID        int64         `json:"id"`
	Demands   []Demand      `json:"demands"`              // in the order in which they are served
	Offerings []Offering    `json:"offerings"`            // what may be rented now, unblocked, sorted by cloud, type, zone, market
	Room      int           `json:"room"`                 // instances that may be added in all
	Clouds    []CloudRoom   `json:"clouds"`               // and in each cloud
	Limits    []Limit       `json:"limits,omitempty"`     // and of some of the offerings
	UseOnce   bool          `json:"use_once,omitempty"`   // an instance is given one job
	JobsEach  int           `json:"jobs_each,omitempty"`  // the most jobs that an instance is given at once; 0: as many as fit
	Boot      time.Duration `json:"boot,omitempty"`       // how long an instance is paid for before it works
	Boots     []Boot        `json:"boots,omitempty"`      // where that is another time; no two of one cloud and type
	Fixed     Money         `json:"fixed,omitempty"`      // what an instance costs beside its price
	SpotShare int           `json:"spot_share,omitempty"` // the most of all vCPUs in one spot offering, in hundredths of a percent; 0: all of them
	Rented    []Rented      `json:"rented,omitempty"`     // what there is already, where there are shares: one for each offering
	Steps     int           `json:"steps"`                // the most units of work to spend on the answer
}

// WholeShare is a share that is all.
const WholeShare = 100_00

// PlanSteps bounds the work of one plan to a second or so. It is counted, never clocked, so that equal problems have
// equal plans.
const PlanSteps = 100_000_000

// Demand is a number of jobs of one shape.
type Demand struct {
	Shape    Shape         `json:"shape"`
	Count    int           `json:"count"`
	Time     time.Duration `json:"time,omitempty"`     // how long one is expected to take; 0: not known
	Spread   int64         `json:"spread,omitempty"`   // how uncertain that is: the standard deviation of its logarithm to the base of 2, in 1024ths; 0: they take as long
	Together int           `json:"together,omitempty"` // how many of them start together or not at all; 0: each alone
	Dearest  Money         `json:"dearest,omitempty"`  // the most that what they run on may cost an hour; 0: anything
	VCPU     Money         `json:"vcpu,omitempty"`     // and the most of each of its vCPUs
}

// CloudRoom is how many instances may be added in a cloud.
type CloudRoom struct {
	Cloud string `json:"cloud"`
	Room  int    `json:"room"`
	Disk  Bytes  `json:"disk,omitempty"` // of an instance's volume that is in the price of an offering
}

// BootOf is how long an instance of a cloud's type is paid for before it works: as usual, or as one of the boots says
// of its type, or else of its cloud.
func BootOf(usual time.Duration, boots []Boot, cloud, typ string) time.Duration {
	boot := usual
	for i := range boots {
		b := &boots[i]
		switch {
		case b.Cloud == cloud && b.Type == typ:
			return max(0, b.Time)
		case b.Cloud == cloud && b.Type == "":
			boot = b.Time
		}
	}
	return max(0, boot)
}

// UsualDisk is how much disk is in the price of a cloud's offerings whose disks are made to measure.
func (p Problem) UsualDisk(cloud string) Bytes {
	if at := slices.IndexFunc(p.Clouds, func(c CloudRoom) bool { return c.Cloud == cloud }); at >= 0 {
		return p.Clouds[at].Disk
	}
	return 0
}

// Limit is how much may be added of the offerings that it covers: those that agree with every field that is not empty.
type Limit struct {
	Cloud      string `json:"cloud,omitempty"`
	Zone       string `json:"zone,omitempty"`
	Type       string `json:"type,omitempty"`
	Market     Market `json:"market,omitempty"`
	QuotaGroup string `json:"quota_group,omitempty"`

	Instances *int      `json:"instances,omitempty"` // nil: any number
	CPU       *MilliCPU `json:"cpu_milli,omitempty"` // the sum of their vCPUs; nil: any
	Share     bool      `json:"share,omitempty"`     // it is there for a share
}

// Boot is how long instances of a type are paid for before they work.
type Boot struct {
	Cloud string        `json:"cloud"`
	Type  string        `json:"type,omitempty"` // empty: those of the cloud's types that are not named
	Time  time.Duration `json:"time"`
}

// Rented is how many vCPUs there are of an offering.
type Rented struct {
	Cloud  string   `json:"cloud"`
	Zone   string   `json:"zone"`
	Type   string   `json:"type"`
	Market Market   `json:"market"`
	CPU    MilliCPU `json:"cpu_milli"`
}

// Less is what is left of the limit when so many instances more count against it, with so many vCPUs in all; the limit
// itself stays as it is.
func (l Limit) Less(instances int, cpu MilliCPU) Limit {
	if l.Instances != nil {
		l.Instances = new(*l.Instances - instances)
	}
	if l.CPU != nil {
		l.CPU = new(*l.CPU - cpu)
	}
	return l
}

// Name says what is limited where, as in "the limit on vCPUs in aws (zone a, quota group standard)".
func (l Limit) Name() string {
	what, where, within := "instances", "", []string{}
	if l.CPU != nil {
		what = "vCPUs"
		if l.Instances != nil {
			what = "instances and vCPUs"
		}
	}
	for _, part := range [...][2]string{{"zone ", l.Zone}, {"type ", l.Type}, {"market ", string(l.Market)}, {"quota group ", l.QuotaGroup}} {
		if part[1] != "" {
			within = append(within, part[0]+part[1])
		}
	}
	if l.Cloud != "" {
		where = " in " + l.Cloud
	}
	if len(within) > 0 {
		where += " (" + strings.Join(within, ", ") + ")"
	}
	return "the limit on " + what + where
}

// Covers reports whether an instance of the offering counts against the limit.
func (l Limit) Covers(o Offering) bool {
	return (l.Cloud == "" || l.Cloud == o.Cloud) && (l.Zone == "" || l.Zone == o.Zone) && (l.Type == "" || l.Type == o.Type.Name) &&
		(l.Market == "" || l.Market == o.Market) && (l.QuotaGroup == "" || l.QuotaGroup == o.QuotaGroup)
}

// Plan answers a Problem.
type Plan struct {
	Problem   int64      `json:"problem"`
	Purchases []Purchase `json:"purchases"`
	Unmet     []Unmet    `json:"unmet,omitempty"` // demands that are not wholly served, and why
	Cost      Money      `json:"cost,omitempty"`  // of the work, as the Problem counts it
	Bound     Money      `json:"bound,omitempty"` // no plan for the same jobs costs less; 0: not known
}

// Purchase is one instance to rent.
type Purchase struct {
	Candidates []int  `json:"candidates"` // indexes of offerings, cheapest first, all able to hold Loads
	Loads      []Load `json:"loads"`
	RunnerUp   *int   `json:"runner_up,omitempty"` // the cheapest offering of another type, in any cloud, that can hold Loads as well; nil: none
}

// Load is how many jobs of a demand an instance is rented for.
type Load struct {
	Demand int `json:"demand"` // index
	Count  int `json:"count"`
}

// Unmet says how many jobs of a demand found no place in the plan, and why.
type Unmet struct {
	Demand   int       `json:"demand"`
	Count    int       `json:"count"`
	Code     string    `json:"code"` // ReasonLimit, ReasonBlocked or ReasonPlanning
	Text     string    `json:"text"`
	Refusals []Refusal `json:"refusals,omitempty"` // why not on the offerings that there are, most frequent first
}

// Nearest is the refusal of the offerings that come nearest to serving the demand: those that pass most of the checks,
// or all of them.
func (u Unmet) Nearest() (nearest Refusal, any bool) {
	best := -1
	for _, r := range u.Refusals {
		at := slices.Index(checks[:], r.Code)
		if at < 0 {
			at = len(checks)
		}
		if at > best {
			best, nearest = at, r
		}
	}
	return nearest, best >= 0
}

// Refusal is why a number of offerings could not serve a demand.
type Refusal struct {
	Code     string `json:"code"`     // placement, market, arch, vcpus, memory, disk, gpus, size, dear, limit or spread
	Count    int    `json:"count"`    // offerings
	Offering string `json:"offering"` // the nearest of them
	Text     string `json:"text"`     // what keeps that one from serving the demand
}
