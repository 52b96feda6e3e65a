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

// LeastBilled is the minimum time that modelled clouds bill; most clouds have the same minimum.
const LeastBilled = time.Minute

// Models describe how clouds behave. All random values follow from the seed.
type Models struct {
	Seed        uint64
	Boot        time.Duration // median time from an accepted create request until the instance answers
	Exhausted   float64       // share of the time for which a zone has no capacity, in periods of half an hour; 0: none
	Interrupted float64       // share of running spot instances that their cloud reclaims within an hour; 0: none
}

// DefaultModels describe a cloud on an ordinary day.
var DefaultModels = Models{Seed: 1, Boot: 45 * time.Second, Interrupted: 0.005}

// Constant durations.
const (
	callTime    = time.Second            // a call to a cloud, which takes effect when it is answered
	listedFor   = 5 * time.Second        // how long an instance is listed after its destroy request is accepted
	loginTime   = 500 * time.Millisecond // to log in to an instance that answers, and to deploy the runner
	dialTime    = 30 * time.Second       // until a connection attempt without an answer fails
	messageTime = 50 * time.Millisecond  // from the controller to a runner, or back
	storeTime   = 100 * time.Millisecond // to fetch and store a job's outputs
	solveTime   = 10 * time.Millisecond
	noticeTime  = 2 * time.Minute  // from a cloud's notice until it reclaims the instance
	stopMargin  = 17 * time.Second // from the end of a job that does not catch SIGTERM until then
)

// Independent random streams, so that a change of one does not shift the others.
const (
	bootStream = iota + 1
	lifeStream
	spotStream
	walkStream
	spellStream
)

func (m Models) dice(stream, n uint64) *rand.Rand { return rand.New(rand.NewPCG(m.Seed^stream<<56, n)) }

// spread is the standard deviation of the logarithm of boot times: two thirds are within a fifth of the median.
const spread = 0.2

// boot returns the boot time of the n-th instance: log-normal, rounded to milliseconds.
func (m Models) boot(n int) time.Duration {
	factor := math.Exp(spread * m.dice(bootStream, uint64(n)).NormFloat64())
	return time.Duration(float64(m.Boot) * factor).Round(time.Millisecond)
}

// life returns how long after its creation the cloud reclaims the n-th instance if it is a spot instance, including the
// notice; false: never.
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

// Offerings returns the offerings of a cloud with a price list, in its zones and both markets. If the list has no spot
// price, the price is 25 to 45 % of the on-demand price, depending on the seed, the type and the zone.
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

// Sort sorts offerings as the engine does.
func Sort(all []drover.Offering) {
	slices.SortFunc(all, func(a, b drover.Offering) int {
		return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
	})
}

// spotPrice returns 25 to 45 % of the on-demand price.
func (m Models) spotPrice(o drover.Offering, onDemand drover.Money) drover.Money {
	percent := 25_000 + m.dice(spotStream, key(o)).Int64N(20_000) // in thousandths
	return max(1, onDemand.Part(percent, 100_000))
}

// key returns a number that identifies an offering's cloud, zone and type.
func key(o drover.Offering) uint64 {
	h := fnv.New64a()
	h.Write([]byte(o.Cloud + "\x00" + o.Zone + "\x00" + o.Type.Name))
	return h.Sum64()
}

// priceStep is how often spot prices change.
const priceStep = 6 * time.Hour

// market contains the clouds' current offerings. At every step, each spot price changes at random by up to 5 % and
// returns a tenth of the way to its initial value. Most of the time, it stays within a quarter of it.
type market struct {
	offerings []drover.Offering // a new slice whenever prices change
	base      []drover.Money
	away      []int64 // difference from base, in thousandths of base
	walks     []*rand.Rand
	places    map[place]int
}

// place identifies an offering.
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

// step changes the spot prices.
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

// of returns a cloud's current offerings, in order. The caller must not change them.
func (k *market) of(cloud string) []drover.Offering {
	from, _ := slices.BinarySearchFunc(k.offerings, cloud, func(o drover.Offering, c string) int { return cmp.Compare(o.Cloud, c) })
	to := from
	for to < len(k.offerings) && k.offerings[to].Cloud == cloud {
		to++
	}
	return k.offerings[from:to:to]
}

// price returns the current hourly price of an offering.
func (k *market) price(o drover.Offering) drover.Money {
	if at, ok := k.places[placeOf(o)]; ok {
		return k.offerings[at].Price
	}
	return o.Price
}
