package runtimes

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s is %.6g, want %.6g", what, got, want)
	}
}

func dist(median time.Duration, sigma float64) Dist {
	return Dist{Log(median), int64(math.Round(sigma / math.Ln2 * Octave))}
}

func TestLogAndExpAreAccurate(t *testing.T) {
	for d := time.Millisecond; d < 30*365*24*time.Hour; d += d/3 + 1 {
		if got, want := float64(Log(d)), math.Log2(float64(d))*Octave; math.Abs(got-want) > 2 {
			t.Errorf("the logarithm of %v is %v, want %v", d, got, want)
		}
		near(t, "a time recovered from its logarithm", float64(Exp(Log(d))), float64(d), 0.002)
	}
}

// draws returns many random remaining run times of a job that has run for age.
func draws(d Dist, age time.Duration, n int) (all []float64) {
	dice := rand.New(rand.NewPCG(1, 2))
	for len(all) < n {
		x := math.Exp2(float64(d.Mu)/Octave+float64(d.Sigma)/Octave*dice.NormFloat64()) - float64(age)
		if x > 0 {
			all = append(all, x)
		}
	}
	return all
}

func mean(all []float64) (sum float64) {
	for _, x := range all {
		sum += x / float64(len(all))
	}
	return sum
}

func TestPointsAgreeWithRandomTrials(t *testing.T) {
	for _, sigma := range []float64{0.05, 0.5, 1.4} {
		a, b := dist(10*time.Minute, sigma), dist(15*time.Minute, 1)
		for _, age := range []time.Duration{0, 9 * time.Minute} {
			left, other := a.Left(age), b.Left(0)
			one, two := draws(a, age, 200_000), draws(b, 0, 200_001)[1:]
			within := 0.03
			if age > 0 {
				within = 0.15 // a quarter of a standard deviation is one point
			}
			near(t, "the mean", float64(left.Mean()), mean(one), within)
			longer, last := slices.Clone(one), slices.Clone(one)
			for i := range one {
				longer[i], last[i] = max(0, one[i]-two[i]), max(one[i], two[i])
			}
			near(t, "the time by which one outlasts another, plus the other", float64(Beyond(&left, &other)+other.Mean()), mean(longer)+mean(two), 0.03)
			both := Longest(&left, &other)
			near(t, "the longest of two", float64(both.Mean()), mean(last), 0.03)
		}
		nine := LongestOf(a, 9)
		all := draws(a, 0, 180_000)
		lasts := []float64{}
		for group := range slices.Chunk(all, 9) {
			lasts = append(lasts, slices.Max(group))
		}
		near(t, "the longest of nine", float64(nine.Mean()), mean(lasts), 0.04)
	}
}

func TestAJobThatHasRunLongerRunsLonger(t *testing.T) {
	d, was := dist(10*time.Minute, 1.4), time.Duration(0)
	for age := time.Hour; age < 1000*time.Hour; age *= 3 {
		left := d.Left(age)
		if left.Mean() <= was {
			t.Errorf("after %v, %v is left, and %v was left before", age, left.Mean(), was)
		}
		was = left.Mean()
	}
}

func TestObservationsAreLearned(t *testing.T) {
	whole, part := dist(time.Hour, 1.4), dist(time.Minute, 0.3)
	l := Learned{}
	for _, x := range draws(part, 0, 300) {
		l = l.See(Log(time.Duration(x)))
	}
	got := l.Given(whole, 3)
	near(t, "the median", got.Median().Seconds(), 60, 0.15)
	near(t, "the spread", float64(got.Sigma), float64(part.Sigma), 0.6)
	if nothing := (Learned{}).Given(whole, 3); nothing != whole && (nothing.Mu != whole.Mu || nothing.Sigma-whole.Sigma > 1 || whole.Sigma-nothing.Sigma > 1) {
		t.Errorf("without observations the result is %+v, want %+v", nothing, whole)
	}
	if sure := Both(part, whole); sure.Sigma >= part.Sigma || sure.Mu <= part.Mu || sure.Mu >= whole.Mu {
		t.Errorf("%+v and %+v combine to %+v", part, whole, sure)
	}
}

// In groups of similar members, members differ far less from each other than groups do.
func TestTheSpreadWithinGroupsIsLearned(t *testing.T) {
	groups, apart := draws(dist(time.Hour, 1.4), 0, 100), Apart{}
	for i, x := range groups {
		one := Learned{}
		for _, y := range draws(dist(time.Duration(x), 0.2), 0, 4*(i+1))[4*i:] {
			one = one.See(Log(time.Duration(y)))
		}
		apart = apart.See(one)
	}
	whole := dist(time.Hour, 1.4).Sigma
	near(t, "the spread within groups", float64(apart.Given(whole)), float64(dist(time.Hour, 0.2).Sigma), 0.25)
	if got := (Apart{}).See(Learned{}.See(1)).Given(whole); got > whole || got < whole-1 {
		t.Errorf("a single observation gives %d, want %d", got, whole)
	}
}

// A group's other members are expected to resemble those seen, the more so the more similar the members of one group
// are.
func TestOtherMembersOfAGroupResembleThoseSeen(t *testing.T) {
	whole, apart := dist(time.Hour, 1.4), dist(time.Hour, 0.2).Sigma
	seen := Learned{}.See(Log(time.Minute))
	one := seen.OfGroup(whole, apart)
	near(t, "the median after one", one.Median().Seconds(), 60, 0.15)
	near(t, "the spread after one", float64(one.Sigma), float64(apart)*math.Sqrt2, 0.1)
	many := seen
	for range 100 {
		many = many.See(Log(time.Minute))
	}
	near(t, "the spread after many", float64(many.OfGroup(whole, apart).Sigma), float64(apart), 0.1)
	if got := seen.OfGroup(whole, whole.Sigma); got.Mu != whole.Mu || got.Sigma > whole.Sigma || got.Sigma < whole.Sigma-1 {
		t.Errorf("members as different as the groups give %+v, want %+v", got, whole)
	}
	if got := seen.OfGroup(Dist{Mu: 7}, 0); got != (Dist{Mu: 7}) {
		t.Errorf("a certain distribution becomes %+v", got)
	}
}

func BenchmarkLeft(b *testing.B) {
	d, other := dist(time.Hour, 1.4), dist(time.Minute, 1)
	for b.Loop() {
		x, y := d.Left(time.Minute), other.Left(0)
		Beyond(&y, &x)
	}
}
