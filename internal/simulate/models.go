package simulate

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"drover"
	"drover/internal/trace"
)

// LeastBilled is what modelled clouds bill in any case, as most clouds do.
const LeastBilled = time.Minute

// Models say how clouds behave. All that is random follows from the seed.
type Models struct {
	Seed        uint64
	Boot        time.Duration // from an accepted create to an instance that answers: the median
	Exhausted   float64       // the share of the time in which a zone has no capacity, half an hour at a time; 0: none
	Interrupted float64       // the share of running spot instances that their cloud takes back within an hour; 0: none
}

// DefaultModels are those of a cloud on an ordinary day.
var DefaultModels = Models{Seed: 1, Boot: 45 * time.Second, Interrupted: 0.005}

// What takes the same time always.
const (
	callTime    = time.Second            // a call to a cloud: it has happened when it is answered
	listedFor   = 5 * time.Second        // an instance is listed this long after its destruction is accepted
	loginTime   = 500 * time.Millisecond // to an instance that answers: logging in and laying out the runner
	dialTime    = 30 * time.Second       // until a connection to what does not answer is given up
	messageTime = 50 * time.Millisecond  // from the controller to a runner, or back
	storeTime   = 100 * time.Millisecond // to fetch and store what a job wrote
	solveTime   = 10 * time.Millisecond
	noticeTime  = 2 * time.Minute // from a cloud's notice to its taking the instance
)

// Streams of chance, so that none moves another.
const (
	bootStream = iota + 1
	lifeStream
	spotStream
	walkStream
	spellStream
)

func (m Models) dice(stream, n uint64) *rand.Rand { return rand.New(rand.NewPCG(m.Seed^stream<<56, n)) }

// spread is the standard deviation of the logarithm of boot times: two of three are within a fifth of the median.
const spread = 0.2

// boot is how long the n-th instance boots: log-normal, to the millisecond.
func (m Models) boot(n int) time.Duration {
	factor := math.Exp(spread * m.dice(bootStream, uint64(n)).NormFloat64())
	return time.Duration(float64(m.Boot) * factor).Round(time.Millisecond)
}

// life is how long after its creation the cloud takes the n-th instance back if it is a spot one, notice included; false for never.
func (m Models) life(n int) (time.Duration, bool) {
	if m.Interrupted <= 0 {
		return 0, false
	}
	hours := m.dice(lifeStream, uint64(n)).ExpFloat64() / -math.Log1p(-min(m.Interrupted, 0.999))
	if hours > 24*365 {
		return 0, false
	}
	return time.Duration(hours*float64(time.Hour)).Round(time.Millisecond) + noticeTime, true
}

// Offerings are what a cloud with a price list offers in its zones, on both markets. Where the list has no spot price it is between a quarter
// and less than half of the other, which follows from the seed, the type and the zone.
func (m Models) Offerings(cloud string, zones []string, list []trace.Price) (all []drover.Offering) {
	for _, zone := range zones {
		for _, p := range list {
			o := drover.Offering{Cloud: cloud, Zone: zone, Type: p.Type, Market: drover.OnDemand, Price: p.OnDemand}
			all = append(all, o)
			o.Market, o.Price = drover.Spot, p.Spot
			if o.Price == 0 {
				o.Price = m.spotPrice(o, p.OnDemand)
			}
			all = append(all, o)
		}
	}
	Sort(all)
	return all
}

// Sort puts offerings in the order in which the engine keeps them.
func Sort(all []drover.Offering) {
	slices.SortFunc(all, func(a, b drover.Offering) int {
		return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
	})
}

// spotPrice is 25 to 45 % of the price on demand.
func (m Models) spotPrice(o drover.Offering, onDemand drover.Money) drover.Money {
	percent := 25_000 + m.dice(spotStream, key(o)).Int64N(20_000) // in thousandths
	return max(1, onDemand.Part(percent, 100_000))
}

// key is a number for an offering.
func key(o drover.Offering) uint64 {
	h := fnv.New64a()
	h.Write([]byte(o.Cloud + "\x00" + o.Zone + "\x00" + o.Type.Name))
	return h.Sum64()
}

// priceStep is how often spot prices move.
const priceStep = 6 * time.Hour

// market is what the clouds offer now. At every step each spot price moves at random, by up to 5 %, and is drawn back a tenth of the way to where
// it began; so it stays within a quarter of that.
type market struct {
	offerings []drover.Offering // a new slice whenever prices have moved
	base      []drover.Money
	away      []int64 // from base, in thousandths of it
	walks     []*rand.Rand
	places    map[place]int
}

// place names an offering.
type place struct {
	cloud, zone, kind string
	market            drover.Market
}

func placeOf(o drover.Offering) place { return place{o.Cloud, o.Zone, o.Type.Name, o.Market} }

func newMarket(m Models, offerings []drover.Offering) *market {
	k := &market{offerings: offerings, away: make([]int64, len(offerings)), walks: make([]*rand.Rand, len(offerings)), places: map[place]int{}}
	for i, o := range offerings {
		k.base = append(k.base, o.Price)
		k.places[placeOf(o)] = i
		if o.Market == drover.Spot {
			k.walks[i] = m.dice(walkStream, key(o))
		}
	}
	return k
}

// step moves the prices on.
func (k *market) step() {
	moved := slices.Clone(k.offerings)
	for i, w := range k.walks {
		if w == nil {
			continue
		}
		k.away[i] += w.Int64N(101) - 50 - k.away[i]/10
		moved[i].Price = max(1, k.base[i]+k.base[i]/1000*drover.Money(k.away[i]))
	}
	k.offerings = moved
}

// of is a cloud's part of what is offered now, in the order of the whole. It is not to be changed.
func (k *market) of(cloud string) []drover.Offering {
	from, _ := slices.BinarySearchFunc(k.offerings, cloud, func(o drover.Offering, c string) int { return cmp.Compare(o.Cloud, c) })
	to := from
	for to < len(k.offerings) && k.offerings[to].Cloud == cloud {
		to++
	}
	return k.offerings[from:to:to]
}

// price is what an offering costs an hour now.
func (k *market) price(o drover.Offering) drover.Money {
	if at, ok := k.places[placeOf(o)]; ok {
		return k.offerings[at].Price
	}
	return o.Price
}
