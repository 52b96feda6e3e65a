package pack

// localSearch improves a pattern by swaps: repeatedly the one that gains most, which replaces a job by a more valuable
// one, or adds one to free room. Choosing jobs one by one leaves room that no job fits; with few shapes and many jobs a
// swap nearly always fills it.
func (s *stock) localSearch(f *pattern, by *measure) {
	kd := &s.m.kinds[f.kind]
	free := kd.has
	for _, l := range f.loads {
		free = free.minus(s.m.items[l.item].need, l.count)
		s.taken[l.item] = l.count
	}
	for range maxSwaps {
		out, in, gain := s.swap(kd, f, free, by)
		if gain <= 0 {
			break
		}
		free = free.minus(s.m.items[in].need, 1)
		s.move(f, in, 1)
		if out >= 0 {
			free = free.minus(s.m.items[out].need, -1)
			s.move(f, out, -1)
		}
		f.value += gain
	}
	for _, l := range f.loads {
		s.taken[l.item] = 0
	}
}

// maxSwaps bounds the work for one pattern.
const maxSwaps = 20

// swap finds the swap that gains most: the job to remove, -1 if none, and the one to add. gain is 0 if there is none.
func (s *stock) swap(kd *kind, f *pattern, free vec, by *measure) (out, in int, gain int64) {
	out = -1
	for x := -1; x < len(f.loads); x++ {
		room, lost, of := free, int64(0), -1
		if x >= 0 {
			of = f.loads[x].item
			room, lost = free.minus(s.m.items[of].need, -1), s.values[of]
		}
		at, negative := s.affordable(s.from, room, by), room.negative()
		for p, tries := s.fitting(at, &negative), reach; p < len(s.order) && tries > 0; p, tries = s.fitting(p+1, &negative), tries-1 {
			i := s.order[p]
			if s.values[i]-lost <= gain {
				break // the following ones are worth less
			}
			if s.left[i] > s.taken[i] && room.fits(s.m.items[i].need) && s.m.allowed(kd, s.m.items[i].rule) {
				out, in, gain = of, i, s.values[i]-lost
				break
			}
		}
	}
	return out, in, gain
}

// move adds n jobs of an item to a pattern; n may be negative.
func (s *stock) move(f *pattern, item, n int) {
	s.taken[item] += n
	for x := range f.loads {
		l := &f.loads[x]
		if l.item != item {
			continue
		}
		if l.count += n; l.count == 0 {
			f.loads = append(f.loads[:x], f.loads[x+1:]...)
		}
		return
	}
	f.loads = append(f.loads, load{item, n})
}
