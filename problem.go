package drover

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shape is the part of a job that decides where it can run. Jobs of one shape are interchangeable.
type Shape struct {
	Need      Resources  `json:"need"`
	Placement Placement  `json:"placement"`
	Spot      SpotPolicy `json:"spot"`
}

// Accepts reports whether a job of this shape can run on an empty instance of the offering.
func (s Shape) Accepts(o Offering) bool {
	return s.Placement.Allows(o.Cloud, o.Zone, o.Type.Name, o.Price) && s.Spot.Allows(o.Market) && s.room(o).Fits(s.Need)
}

// AtAnyPrice returns the shape without its maximum price.
func (s Shape) AtAnyPrice() Shape {
	s.Placement.MaxPrice = 0
	return s
}

// Misfit returns why a job of the shape cannot run on the offering; the zero Misfit if it can.
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
	if !s.Placement.Pays(o.Price) {
		return Misfit{Check: "price", Needs: s.Placement.MaxPrice.String(), Has: o.Price.String()}
	}
	return Misfit{}
}

// room is what an instance of the offering would have for the shape.
func (s Shape) room(o Offering) Resources {
	r := o.Type.Resources
	if r.Disk == 0 {
		r.Disk = s.Need.Disk // the volume is made as large as the job needs
	}
	return r
}

// LeftOut is an offering that the configuration excludes.
type LeftOut struct {
	Offering
	Why string // which key excludes it
}

// NearestMiss explains why none of the offerings can hold the shape; empty if one can. It names the cheapest excluded
// offering that could. If there is none, it names the offering that passes the most checks and, among those that fail
// the same check, has the most of what is missing.
func (s Shape) NearestMiss(offerings []Offering, leftOut ...LeftOut) string {
	if slices.ContainsFunc(offerings, s.Accepts) {
		return "" // without building any text
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

// Misfit is the check that an offering or an instance fails, what a job needs, and what there is.
type Misfit struct {
	Check string // one of checks; empty: the job fits
	Needs string // "4 vCPUs", "in zone a"
	Has   string // "2"; empty for a placement
}

// checks are the checks of a Misfit, in the order in which they are made: the later the one that fails, the nearer the
// offering.
var checks = [...]string{"placement", "market", "arch", "vcpus", "memory", "disk", "gpus", "price"}

// String explains why the job does not fit. The text follows the name of the offering or instance.
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

// of is String as a sentence that calls the job "it" and names the offering.
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

// Amount returns how much there is of a check's resource, 0 if the check has no amount.
func (r Resources) Amount(check string) int64 {
	if at := slices.Index(checks[:], check); at >= 0 {
		return amounts(r)[at]
	}
	return 0
}

// amounts returns Amount for every check.
func amounts(r Resources) [len(checks)]int64 {
	return [...]int64{0, 0, 0, int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs), 0}
}

// Affords reports whether the offering's price is within the demand's limits.
func (d Demand) Affords(o Offering) bool {
	return (d.Dearest == 0 || o.Price <= d.Dearest) && (d.VCPU == 0 || o.VCPUPrice() <= d.VCPU)
}

// Problem is the question of which instances to rent for jobs that have no place. Its answer depends on nothing else.
//
// The plan should minimize the cost of the work. An instance costs its hourly price for as long as it boots and its
// longest job is expected to take (an hour where that is not known), and a fixed amount in addition.
type Problem struct {
	ID        int64         `json:"id"`
	Demands   []Demand      `json:"demands"`              // in the order in which they are served
	Offerings []Offering    `json:"offerings"`            // what may be rented now, unblocked, sorted by cloud, type, zone, market
	Room      int           `json:"room"`                 // instances that may be added in total
	Clouds    []CloudRoom   `json:"clouds"`               // instances that may be added in each cloud
	Limits    []Limit       `json:"limits,omitempty"`     // limits on some of the offerings
	UseOnce   bool          `json:"use_once,omitempty"`   // each instance gets one job
	JobsEach  int           `json:"jobs_each,omitempty"`  // the most jobs that an instance gets at once; 0: as many as fit
	Boot      time.Duration `json:"boot,omitempty"`       // how long an instance is paid for before it works
	Boots     []Boot        `json:"boots,omitempty"`      // where it differs from Boot; at most one for each cloud and type
	Fixed     Money         `json:"fixed,omitempty"`      // what an instance costs in addition to its price
	SpotShare int           `json:"spot_share,omitempty"` // the largest share of all vCPUs in one spot offering, in hundredths of a percent; 0: no limit
	Rented    []Rented      `json:"rented,omitempty"`     // what is already rented, if there are shares: one for each offering
	Steps     int           `json:"steps"`                // the most units of work to spend on the answer
}

// WholeShare is a share of 100%.
const WholeShare = 100_00

// PlanSteps limits the work on one plan to about a second. Steps are counted, not timed, so that equal problems have
// equal plans.
const PlanSteps = 100_000_000

// Demand is a number of jobs of one shape.
type Demand struct {
	Shape    Shape         `json:"shape"`
	Count    int           `json:"count"`
	Time     time.Duration `json:"time,omitempty"`     // how long one is expected to take; 0: not known
	Spread   int64         `json:"spread,omitempty"`   // how uncertain Time is: the standard deviation of its base-2 logarithm, in 1024ths; 0: all take that long
	Together int           `json:"together,omitempty"` // how many of them start together or not at all; 0: each alone
	Dearest  Money         `json:"dearest,omitempty"`  // the most that their instance may cost an hour; 0: no limit
	VCPU     Money         `json:"vcpu,omitempty"`     // the most that each of its vCPUs may cost an hour; 0: no limit
}

// CloudRoom is how many instances may be added in a cloud.
type CloudRoom struct {
	Cloud string `json:"cloud"`
	Room  int    `json:"room"`
	Disk  Bytes  `json:"disk,omitempty"` // how much of an instance's volume an offering's price includes
}

// BootOf returns how long an instance of a cloud's type is paid for before it works: the time in boots for its type,
// else for its cloud, else the usual one.
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

// UsualDisk returns how much disk the price includes for those offerings of a cloud whose disk size is free to choose.
func (p Problem) UsualDisk(cloud string) Bytes {
	if at := slices.IndexFunc(p.Clouds, func(c CloudRoom) bool { return c.Cloud == cloud }); at >= 0 {
		return p.Clouds[at].Disk
	}
	return 0
}

// Limit is how much may be added of the offerings that it covers: those that match all of its non-empty fields.
type Limit struct {
	Cloud      string `json:"cloud,omitempty"`
	Zone       string `json:"zone,omitempty"`
	Type       string `json:"type,omitempty"`
	Market     Market `json:"market,omitempty"`
	QuotaGroup string `json:"quota_group,omitempty"`

	Instances *int      `json:"instances,omitempty"` // nil: any number
	CPU       *MilliCPU `json:"cpu_milli,omitempty"` // the sum of their vCPUs; nil: any
	Share     bool      `json:"share,omitempty"`     // it enforces a share
}

// Boot is how long instances of a type are paid for before they work.
type Boot struct {
	Cloud string        `json:"cloud"`
	Type  string        `json:"type,omitempty"` // empty: all types of the cloud that have no entry
	Time  time.Duration `json:"time"`
}

// Rented is how many vCPUs of an offering are rented.
type Rented struct {
	Cloud  string   `json:"cloud"`
	Zone   string   `json:"zone"`
	Type   string   `json:"type"`
	Market Market   `json:"market"`
	CPU    MilliCPU `json:"cpu_milli"`
}

// Less returns what is left of the limit after this many more instances, with this many vCPUs in total, count against
// it. It does not change l.
func (l Limit) Less(instances int, cpu MilliCPU) Limit {
	if l.Instances != nil {
		l.Instances = new(*l.Instances - instances)
	}
	if l.CPU != nil {
		l.CPU = new(*l.CPU - cpu)
	}
	return l
}

// Name describes the limit, as in "the limit on vCPUs in aws (zone a, quota group standard)".
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

// Plan is the answer to a Problem.
type Plan struct {
	Problem   int64      `json:"problem"`
	Purchases []Purchase `json:"purchases"`
	Unmet     []Unmet    `json:"unmet,omitempty"` // demands that are not fully served, and why
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
	Refusals []Refusal `json:"refusals,omitempty"` // why the offerings cannot serve them, most frequent first
}

// Nearest returns the refusal of the offerings that come nearest to serving the demand: those that pass most of the
// checks, or all of them.
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
	Text     string `json:"text"`     // why that one cannot serve the demand
}
