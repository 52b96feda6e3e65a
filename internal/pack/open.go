package pack

// openBins are the bins that are filled plainly, in the order in which they were rented. Finding the first one that holds a job takes a walk
// down a tree instead of a look at each: a node has the most that any bin below it has free, of each resource by itself.
type openBins struct {
	bins []plainBin
	tree []vec // tree[1] is the root, the children of n are 2n and 2n+1, the leaves begin at size
	size int   // leaves, a power of two
}

// add puts another bin at the end.
func (o *openBins) add(b plainBin) {
	o.bins = append(o.bins, b)
	if len(o.bins) > o.size {
		o.grow()
		return
	}
	o.changed(len(o.bins) - 1)
}

// grow makes room for twice as many bins.
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

// changed takes in what is free in a bin now.
func (o *openBins) changed(i int) {
	n := o.size + i
	o.tree[n] = o.bins[i].free
	for n /= 2; n > 0; n /= 2 {
		o.tree[n] = largest(o.tree[2*n], o.tree[2*n+1])
	}
}

// next is the first bin from a place on in which the need fits; -1 for none. It counts the nodes it looks at as steps.
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

// largest is the larger of two vectors in each resource.
func largest(a, b vec) vec {
	for d := range a {
		a[d] = max(a[d], b[d])
	}
	return a
}
