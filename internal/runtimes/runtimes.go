// Package runtimes reckons with how long jobs take. What is known of a run time is a log-normal distribution (Dist); of
// a job that runs, what is left follows from how long it has run: what has run long will run longer. An instance lives
// until the last of its jobs ends (Longest), and a job keeps it for as long as it is likely to outlast the others
// (Beyond). Knowledge is learned from what has ended (Learned).
//
// The package is pure and computes in integers alone, so that equal input has equal results on every processor.
package runtimes

import (
	"math/bits"
	"time"
)

// Octave is the unit of logarithms to the base of 2: times are told apart by thousandths.
const Octave = 1 << 10

// Dist is the log-normal distribution of a run time.
type Dist struct {
	Mu    int64 `json:"mu"`    // the logarithm of the median in nanoseconds, in parts of an Octave
	Sigma int64 `json:"sigma"` // the standard deviation of the logarithm
}

// Log is the logarithm of a time.
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

// roots are 2^(2^-i) in parts of 2^62, for i from 1 on.
var roots = [...]uint64{
	6521908912666391106, 5484249825272419512, 5029079263719320435, 4815862801830788490, 4712668792719003884,
	4661903986662671290, 4636727017470743990, 4624189567668517720, 4617933561212708776, 4614808732577250068,
}

const (
	longest = 1 << 60 // some 36 years, beyond which no time is told apart
	most    = 60 * Octave
)

// Exp is the time of a logarithm.
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

// A distribution is computed with as points: a quarter of a standard deviation apart, from 2.5 below the median to 4
// above it.
const (
	lowest   = -10
	highest  = 16
	pointsOf = highest - lowest + 1
)

// certain is the weight of all points together.
const certain = 1 << 20

// weights are the normal distribution's, of a quarter of a standard deviation around each point, at the ends with all
// that is beyond.
var weights = [pointsOf]int64{
	9201, 8408, 14264, 22738, 34062, 47950, 63431, 78851, 92112, 101116, 104309, 101116, 92112, 78851, 63431, 47950, 34062, 22738, 14264, 8408, 4658, 2425, 1186, 545, 236, 96, 56,
}

// Mean is how long a job takes on average.
func (d Dist) Mean() time.Duration {
	p := d.Left(0)
	return p.Mean()
}

// Median is what as many jobs exceed as fall short of.
func (d Dist) Median() time.Duration { return Exp(d.Mu) }

// Left is how much longer a job runs that has run for so long. Of one that has outrun all that was thought likely
// nothing better is known than that it will run for a part of that time again, as uncertain as it was.
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

// Points are times, the least first, each with how likely it is. No points at all are a time that is over.
type Points struct {
	n   int
	sum int64 // of the weights
	all [pointsOf]point
}

type point struct {
	at     time.Duration
	weight int64
}

// At is a time that is certain.
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

// Mean is the expected time.
func (p *Points) Mean() time.Duration { return Beyond(p, &Points{}) }

// By is a time by which it is over with a likelihood of so many hundredths.
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

// Beyond is how much longer the first takes than the second, on average, where it is no shorter.
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

// scaled is a part of a time.
func scaled(d time.Duration, part, of int64) time.Duration {
	var s sum128
	s.add(d, part)
	return s.over(of)
}

// Longest is when both are over.
func Longest(p, q *Points) (r Points) {
	switch {
	case p.n == 0:
		return *q
	case q.n == 0:
		return *p
	}
	// The likelihood that both are over by a time is the product of each; what it grows by at each point is that one's
	// weight.
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

// fewer is many points as few, neighbours as one at their mean.
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

// LongestOf is when the last of so many jobs that are alike is over.
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

// OfMean is the distribution of a mean and a spread.
func OfMean(mean time.Duration, sigma int64) Dist {
	const halfLn2 = 355 // in parts of an Octave: the mean of 2^x is above its median by that times the variance
	return Dist{Log(mean) - variance(Dist{Sigma: sigma})*halfLn2/Octave, sigma}
}

// Later is the times as much later.
func (p Points) Later(by time.Duration) Points {
	for i := range p.all[:p.n] {
		p.all[i].at += by
	}
	return p
}
