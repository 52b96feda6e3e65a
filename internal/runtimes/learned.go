package runtimes

import "math/bits"

// Learned summarizes the observations of a log-normal quantity, such as the run times of a user's jobs. Recent ones
// weigh more than old ones.
type Learned struct {
	Count int64 `json:"count"` // number of observations, up to memory
	Mean  int64 `json:"mean"`  // of the logarithms
	Var   int64 `json:"var"`   // variance of the logarithms, in parts of an Octave
}

// memory limits the counts, so that a new observation weighs at least one part in memory.
const memory = 256

// See returns the summary with one more observation.
func (l Learned) See(log int64) Learned {
	l.Count = min(l.Count+1, memory)
	away := log - l.Mean
	l.Mean += away / l.Count
	l.Var += (away*(log-l.Mean)/Octave - l.Var) / l.Count
	return l
}

// Apart is the variance within groups, such as the run times of jobs submitted together. It is usually far smaller than
// the variance between groups.
type Apart struct {
	Count int64 `json:"count"` // degrees of freedom, up to memory
	Var   int64 `json:"var"`   // variance of the logarithms, in parts of an Octave
}

// See returns the variance with one more group.
func (a Apart) See(group Learned) Apart {
	free := group.Count - 1
	if free <= 0 {
		return a
	}
	all := a.Count + free
	return Apart{min(all, memory), (a.Count*a.Var + group.Count*group.Var) / all}
}

// Given returns the standard deviation within a group, if whole is that of all observations. The fewer groups were
// seen, the closer it is to whole.
func (a Apart) Given(whole int64) int64 {
	return min(whole, root((a.Count*a.Var+trust*(whole*whole/Octave))/(a.Count+trust)*Octave))
}

// trust is the number of groups' members that weigh as much as the prior.
const trust = 3

// Given returns the distribution of a part of a whole, such as one user's jobs among everybody's. The fewer
// observations there are, the closer it is to the whole's, which weighs as much as this many of them. Surprises make it
// wider, but never raise its mean above both the whole's and the observations': a job that ends at once must not make
// others look longer.
func (l Learned) Given(whole Dist, weighs int64) Dist {
	n, all := l.Count, l.Count+weighs
	if n == 0 {
		return whole
	}
	away := l.Mean - whole.Mu
	spread := (n*l.Var+weighs*variance(whole))/all + weighs*(away*away/Octave)/(all*all) // the last term is the uncertainty of the mean
	mu := whole.Mu + away*n/all
	widest := (max(whole.Mu+aboveMedian(variance(whole)), l.Mean+aboveMedian(l.Var)) - mu) * Octave / halfLn2
	return Dist{mu, root(min(spread, widest) * Octave)}
}

// halfLn2 is half the natural logarithm of 2, in parts of an Octave.
const halfLn2 = 355

// aboveMedian returns by how much the logarithm of the mean exceeds that of the median.
func aboveMedian(variance int64) int64 { return variance * halfLn2 / Octave }

// OfGroup returns the distribution of a group's other members after some of them were seen. whole is the distribution
// over all groups, apart the standard deviation within one group. It is the predictive distribution of a normal model
// whose group means are normal, too, with all variances in parts of an Octave.
func (l Learned) OfGroup(whole Dist, apart int64) Dist {
	within := apart * apart / Octave
	between := max(0, variance(whole)-within)
	known := l.Count*between + within
	if known == 0 {
		return whole
	}
	return Dist{whole.Mu + (l.Mean-whole.Mu)*(l.Count*between)/known, root((within + between*within/known) * Octave)}
}

func variance(d Dist) int64 { return d.Sigma * d.Sigma / Octave }

// Both combines two independent estimates, weighted by their certainty (inverse variance).
func Both(a, b Dist) Dist {
	va, vb := max(1, variance(a)), max(1, variance(b))
	return Dist{(a.Mu*vb + b.Mu*va) / (va + vb), root(va * vb / (va + vb) * Octave)}
}

// root returns the integer square root.
func root(x int64) int64 {
	if x <= 0 {
		return 0
	}
	r := int64(1) << ((bits.Len64(uint64(x)) + 1) / 2)
	for next := (r + x/r) / 2; next < r; next = (r + x/r) / 2 {
		r = next
	}
	return r
}
