package sim

import "drover"

// happening is something that is to happen.
type happening struct {
	at  drover.Time
	seq int
	do  func()
}

func (h happening) before(o happening) bool { return h.at < o.at || h.at == o.at && h.seq < o.seq }

// agenda is a heap of happenings, the next on top.
type agenda []happening

func (a *agenda) add(h happening) {
	*a = append(*a, h)
	q := *a
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q[i].before(q[parent]) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

// next takes the next happening out.
func (a *agenda) next() happening {
	q := *a
	top, last := q[0], len(q)-1
	q[0], q[last] = q[last], happening{}
	q = q[:last]
	*a = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q[child].before(q[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
