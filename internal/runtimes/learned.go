package runtimes

import "math/bits"

// Learned is what has been seen of a quantity that is log-normal, such as the run times of a user's jobs. What is new
// counts for more than what is old.
type Learned struct {
	Count int64 `json:"count"` // how often it was seen, up to the memory
	Mean  int64 `json:"mean"`  // of the logarithm
	Var   int64 `json:"var"`   // the mean square of its distance from that, in parts of an Octave
}

// memory is how many were seen at least of which the last counts for less than one in so many.
const memory = 256

// See is what is known after one more was seen.
func (l Learned) See(log int64) Learned {
	l.Count = min(l.Count+1, memory)
	away := log - l.Mean
	l.Mean += away / l.Count
	l.Var += (away*(log-l.Mean)/Octave - l.Var) / l.Count
	return l
}

// Apart is how far apart the members of one group lie, such as the run times of jobs that were submitted together: far
// less, as a rule, than the groups do.
type Apart struct {
	Count int64 `json:"count"` // of independent differences, up to the memory
	Var   int64 `json:"var"`   // their variance, in parts of an Octave
}

// See is what is known after one more group was seen.
func (a Apart) See(group Learned) Apart {
	free := group.Count - 1
	if free <= 0 {
		return a
	}
	all := a.Count + free
	return Apart{min(all, memory), (a.Count*a.Var + group.Count*group.Var) / all}
}

// Given is the standard deviation of a group's members, of which the whole has so much: the less was seen, the more of
// that is taken to be theirs.
func (a Apart) Given(whole int64) int64 {
	return min(whole, root((a.Count*a.Var+trust*(whole*whole/Octave))/(a.Count+trust)*Octave))
}

// trust is how many were seen that count for as much as what is known beforehand.
const trust = 3

// Given is what is known of a part of something else, such as one user's jobs of everybody's: the less was seen of it,
// the more it is taken to be like the whole.
func (l Learned) Given(whole Dist) Dist {
	n, all := l.Count, l.Count+trust
	if n == 0 {
		return whole
	}
	away := l.Mean - whole.Mu
	spread := (n*l.Var+trust*variance(whole))/all + trust*(away*away/Octave)/(all*all) // the last since the mean is not known better yet
	return Dist{whole.Mu + away*n/all, root(spread * Octave)}
}

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

// Both is what follows from two independent opinions, each of which counts for as much as it is certain.
func Both(a, b Dist) Dist {
	va, vb := max(1, variance(a)), max(1, variance(b))
	return Dist{(a.Mu*vb + b.Mu*va) / (va + vb), root(va * vb / (va + vb) * Octave)}
}

// root is the square root.
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
