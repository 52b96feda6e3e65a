package pack

// openBins are the bins that are being filled greedily, in the order in which they were rented. The first one that fits
// a job is found by walking down a tree: a node has the largest free amount of each resource, separately, in any bin
// below it.
type openBins struct {
	bins []openBin
	tree []vec // tree[1] is the root, the children of n are 2n and 2n+1, the leaves start at size
	size int   // leaves, a power of two
}

// add appends a bin.
func (o *openBins) add(b openBin) {
	o.bins = append(o.bins, b)
	if len(o.bins) > o.size {
		o.grow()
		return
	}
	o.changed(len(o.bins) - 1)
}

// grow doubles the room for bins.
func (o *openBins) grow() {
	o.size = max(16, 2*o.size)
	o.tree = make([]vec, 2*o.size)
	for i, b := range o.bins {
		o.tree[o.size+i] = b.free
	}
	for n := o.size - 1; n > 0; n-- {
		o.tree[n] = largest(o.tree[2*n], o.tree[2*n+1])
	}
}

// changed updates the tree for a changed bin.
func (o *openBins) changed(i int) {
	n := o.size + i
	o.tree[n] = o.bins[i].free
	for n /= 2; n > 0; n /= 2 {
		o.tree[n] = largest(o.tree[2*n], o.tree[2*n+1])
	}
}

// next returns the first bin from a position on in which the need fits; -1 for none. It counts visited nodes as steps.
func (o *openBins) next(from int, need vec, steps *int) int {
	if from >= len(o.bins) {
		return -1
	}
	n := o.size + from
	for {
		*steps--
		if o.tree[n].fits(need) {
			if i := n - o.size; i >= len(o.bins) {
				return -1
			} else if i >= 0 {
				return i
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
