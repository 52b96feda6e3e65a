// Package runtimes models how long jobs run. A run time has a log-normal distribution (Dist). How much longer a running
// job takes depends on how long it has run already: the longer it has run, the longer it will run. An instance lives
// until the last of its jobs ends (Longest), and a job extends that life by the time for which it is expected to
// outlast the others (Beyond). Distributions are learned from jobs that have ended (Learned).
//
// The package has no side effects and uses only integers, so equal inputs give equal results on every processor.
package runtimes

import (
	"math/bits"
	"time"
)

// Octave is 1 in logarithms to base 2, which therefore have a resolution of about a thousandth.
const Octave = 1 << 10

// Dist is the log-normal distribution of a run time.
type Dist struct {
	Mu    int64 `json:"mu"`    // the logarithm of the median in nanoseconds, in parts of an Octave
	Sigma int64 `json:"sigma"` // the standard deviation of the logarithm
}

// Log returns the logarithm of a duration, in parts of an Octave.
func Log(d time.Duration) int64 {
	x := uint64(max(1, d))
	whole := bits.Len64(x) - 1
	x <<= 63 - whole // 1 <= x/2^63 < 2
	log := int64(whole)
	for range 10 { // squaring doubles the logarithm: the carry is its next digit
		hi, _ := bits.Mul64(x, x)
		log <<= 1
		if hi >= 1<<63 {
			log, x = log+1, hi
		} else {
			x = hi << 1
		}
	}
	return log
}

// roots are 2^(2^-i) in parts of 2^62, for i from 1 to 10.
var roots = [...]uint64{
	6521908912666391106, 5484249825272419512, 5029079263719320435, 4815862801830788490, 4712668792719003884,
	4661903986662671290, 4636727017470743990, 4624189567668517720, 4617933561212708776, 4614808732577250068,
}

const (
	longest = 1 << 60 // about 36 years, the longest duration
	most    = 60 * Octave
)

// Exp returns the duration with this logarithm.
func Exp(log int64) time.Duration {
	if log < 0 {
		return 0
	}
	if log >= most {
		return longest
	}
	x := uint64(1) << 62
	for i, root := range roots {
		if log>>(9-i)&1 == 1 {
			hi, lo := bits.Mul64(x, root)
			x = hi<<2 | lo>>62
		}
	}
	whole := log / Octave
	return time.Duration(x >> (62 - whole))
}

// Calculations represent a distribution by points: a quarter of a standard deviation apart, from 2.5 standard
// deviations below the median to 4 above it.
const (
	lowest   = -10
	highest  = 16
	pointsOf = highest - lowest + 1
)

// certain is the total weight of all points.
const certain = 1 << 20

// weights are the shares of the normal distribution within an eighth of a standard deviation of each point. The first
// and the last include everything beyond.
var weights = [pointsOf]int64{
	9201, 8408, 14264, 22738, 34062, 47950, 63431, 78851, 92112, 101116, 104309, 101116, 92112, 78851, 63431, 47950, 34062, 22738, 14264, 8408, 4658, 2425, 1186, 545, 236, 96, 56,
}

// Mean returns the mean run time.
func (d Dist) Mean() time.Duration {
	p := d.Left(0)
	return p.Mean()
}

// Median returns the median run time.
func (d Dist) Median() time.Duration { return Exp(d.Mu) }

// Left returns the remaining run time of a job that has run for age. A job that has exceeded all points is expected to
// run for another part of its age, half of the standard deviation in octaves.
func (d Dist) Left(age time.Duration) (p Points) {
	for i, w := range weights {
		at := Exp(d.Mu+d.Sigma*int64(i+lowest)/4) - age
		if at > 0 {
			p.add(at, w)
		}
	}
	if p.n == 0 {
		p.add(1+min(age, longest/Octave)*time.Duration(min(d.Sigma, Octave))/(2*Octave), certain)
	}
	return p
}

// Points are durations with weights, shortest first. No points mean a duration of zero.
type Points struct {
	n   int
	sum int64 // of the weights
	all [pointsOf]point
}

type point struct {
	at     time.Duration
	weight int64
}

// At returns a certain duration.
func At(d time.Duration) (p Points) {
	if d > 0 {
		p.add(d, certain)
	}
	return p
}

// add adds a point that is no earlier than the last.
func (p *Points) add(at time.Duration, weight int64) {
	if p.n > 0 && p.all[p.n-1].at == at {
		p.n--
		weight += p.all[p.n].weight
		p.sum -= p.all[p.n].weight
	}
	p.all[p.n] = point{at, weight}
	p.n++
	p.sum += weight
}

// Mean returns the expected duration.
func (p *Points) Mean() time.Duration { return Beyond(p, &Points{}) }

// By returns the duration that is not exceeded with a probability of percent.
func (p *Points) By(percent int64) (at time.Duration) {
	below := int64(0)
	for _, x := range p.all[:p.n] {
		if below*100 >= p.sum*percent {
			break
		}
		at, below = x.at, below+x.weight
	}
	return at
}

// Beyond returns the expected time by which p exceeds than, counting zero where it does not.
func Beyond(p, than *Points) time.Duration {
	if p.n == 0 {
		return 0
	}
	i, below, before := 0, int64(0), sum128{}
	total := sum128{}
	for _, x := range p.all[:p.n] {
		for ; i < than.n && than.all[i].at < x.at; i++ {
			below += than.all[i].weight
			before.add(than.all[i].at, than.all[i].weight)
		}
		if than.n == 0 {
			total.add(x.at, x.weight)
			continue
		}
		longer := x.at - before.over(max(1, below))
		total.add(scaled(longer, below, than.sum), x.weight)
	}
	return total.over(p.sum)
}

// sum128 is a sum of weighted times.
type sum128 struct{ hi, lo uint64 }

func (s *sum128) add(d time.Duration, weight int64) {
	hi, lo := bits.Mul64(uint64(d), uint64(weight))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
}

func (s *sum128) over(weight int64) time.Duration {
	q, _ := bits.Div64(s.hi, s.lo, uint64(weight))
	return time.Duration(q)
}

// scaled returns d × part / of.
func scaled(d time.Duration, part, of int64) time.Duration {
	var s sum128
	s.add(d, part)
	return s.over(of)
}

// Longest returns the longer of two independent durations.
func Longest(p, q *Points) (r Points) {
	switch {
	case p.n == 0:
		return *q
	case q.n == 0:
		return *p
	}
	// The probability that both have ended by a time is the product of their probabilities. Its increase at each point
	// is that point's weight.
	merged, count := [2 * pointsOf]point{}, 0
	i, j, belowP, belowQ, was := 0, 0, int64(0), int64(0), int64(0)
	for i < p.n || j < q.n {
		at := time.Duration(0)
		if j == q.n || i < p.n && p.all[i].at <= q.all[j].at {
			at, belowP, i = p.all[i].at, belowP+p.all[i].weight, i+1
		} else {
			at, belowQ, j = q.all[j].at, belowQ+q.all[j].weight, j+1
		}
		var both sum128
		both.add(time.Duration(belowP), belowQ)
		if now := int64(both.over(p.sum)) * certain / q.sum; now > was {
			merged[count] = point{at, now - was}
			count, was = count+1, now
		}
	}
	return fewer(merged[:count])
}

// fewer merges neighbouring points at their mean, so that no more than pointsOf are left.
func fewer(all []point) (p Points) {
	for i := 0; i < len(all); {
		left, room := len(all)-i, pointsOf-p.n
		n := (left + room - 1) / room
		var s sum128
		weight := int64(0)
		for _, x := range all[i : i+n] {
			s.add(x.at, x.weight)
			weight += x.weight
		}
		p.add(s.over(weight), weight)
		i += n
	}
	return p
}

// LongestOf returns the longest of n independent run times with the same distribution.
func LongestOf(d Dist, n int) (p Points) {
	one := d.Left(0)
	for power := one; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = Longest(&p, &power)
		}
		if n > 1 {
			power = Longest(&power, &power)
		}
	}
	return p
}

// OfMean returns the distribution with this mean and standard deviation of the logarithm.
func OfMean(mean time.Duration, sigma int64) Dist {
	return Dist{Log(mean) - aboveMedian(variance(Dist{Sigma: sigma})), sigma}
}

// Later returns the durations, each longer by the same time.
func (p Points) Later(by time.Duration) Points {
	for i := range p.all[:p.n] {
		p.all[i].at += by
	}
	return p
}
