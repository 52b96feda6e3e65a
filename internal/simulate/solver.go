package simulate

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"drover"
	"drover/internal/pack"
)

// solver caches the real solver's answers: many problems of a workload are equal, and equal problems have equal
// answers.
type solver struct {
	of       []drover.Offering // the last offerings
	onDemand uint64            // their checksum, without spot offerings
	all      uint64
	known    map[string]drover.Plan
}

// seed is that of checksums, which are compared only within the process.
var seed = maphash.MakeSeed()

// mostKnown is the maximum number of cached answers.
const mostKnown = 20_000

func (s *solver) solve(p drover.Problem) drover.Plan {
	if len(p.Offerings) == 0 {
		return pack.Solve(p)
	}
	if len(s.of) != len(p.Offerings) || &s.of[0] != &p.Offerings[0] {
		s.of, s.onDemand, s.all = p.Offerings, sum(p.Offerings, drover.OnDemand), sum(p.Offerings, drover.OnDemand, drover.Spot)
	}
	asked := struct {
		drover.Problem
		Offered uint64
	}{p, s.all}
	if !slices.ContainsFunc(p.Demands, func(d drover.Demand) bool { return d.Shape.Spot != drover.SpotNever }) {
		asked.Offered = s.onDemand
	}
	asked.ID, asked.Offerings = 0, nil
	key, err := json.Marshal(asked)
	if err != nil {
		return pack.Solve(p)
	}
	plan, known := s.known[string(key)]
	if !known {
		if s.known == nil || len(s.known) == mostKnown {
			s.known = map[string]drover.Plan{}
		}
		plan = pack.Solve(p)
		s.known[string(key)] = plan
	}
	return plan
}

// sum returns a checksum of the offerings in some markets, including their positions.
func sum(offerings []drover.Offering, markets ...drover.Market) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i, o := range offerings {
		if slices.Contains(markets, o.Market) {
			maphash.WriteComparable(&h, i)
			maphash.WriteComparable(&h, o)
		}
	}
	return h.Sum64()
}
