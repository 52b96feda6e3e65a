package pack

import "math"

// fitTree finds the first of a list of vectors into which a need fits. A node has the largest amount in each dimension,
// separately, of any vector below it.
type fitTree struct {
	nodes []vec // nodes[1] is the root, the children of n are 2n and 2n+1, the leaves start at size
	size  int   // leaves, a power of two
	n     int   // vectors
}

// newFitTree returns the tree of n vectors, with room for size.
func newFitTree(n, size int, of func(int) vec) fitTree {
	t := fitTree{nodes: make([]vec, 2*size), size: size, n: n}
	for i := range size {
		t.nodes[size+i] = none
		if i < n {
			t.nodes[size+i] = of(i)
		}
	}
	for x := size - 1; x > 0; x-- {
		t.nodes[x] = largest(t.nodes[2*x], t.nodes[2*x+1])
	}
	return t
}

// set changes the vector at a position, or appends one.
func (t *fitTree) set(i int, v vec) {
	if i == t.size {
		old := t.nodes[t.size:]
		*t = newFitTree(i, max(16, 2*i), func(i int) vec { return old[i] })
	}
	t.n = max(t.n, i+1)
	n := t.size + i
	t.nodes[n] = v
	for n /= 2; n > 0; n /= 2 {
		t.nodes[n] = largest(t.nodes[2*n], t.nodes[2*n+1])
	}
}

// none is less than any need.
var none = vec{math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64}

// next returns the first position from one on where the need fits; -1 for none. It counts visited nodes as steps.
func (t *fitTree) next(from int, need vec, steps *int) int {
	if from >= t.n {
		return -1
	}
	n := t.size + from
	for {
		*steps--
		if t.nodes[n].fits(need) {
			if n >= t.size {
				return n - t.size
			}
			n *= 2
			continue
		}
		for n&1 == 1 { // up from each last child, then to the next sibling
			if n /= 2; n <= 1 {
				return -1
			}
		}
		n++
	}
}

// largest returns the maximum in each dimension.
func largest(a, b vec) vec {
	for d := range a {
		a[d] = max(a[d], b[d])
	}
	return a
}
