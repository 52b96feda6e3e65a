package pack

import "slices"

// sharesLeft is what each share has left if every purchase becomes its first candidate. Each further candidate is
// deducted too, so that whichever the cloud chooses, no share is exceeded.
type sharesLeft struct {
	led  ledger
	rows map[int][]int // the share rows that an offering counts against, cached
}

// sharesLeft returns nil if there are no shares.
func (m *model) sharesLeft(led ledger) *sharesLeft {
	if !slices.ContainsFunc(m.rows, row.share) {
		return nil
	}
	return &sharesLeft{slices.Clone(led), map[int][]int{}}
}

// take deducts one instance of an offering, if all its shares have room for it.
func (s *sharesLeft) take(m *model, offering int) bool {
	if s == nil {
		return true
	}
	o := &m.p.Offerings[offering]
	rows, known := s.rows[offering]
	if !known {
		rows = slices.DeleteFunc(m.rowsOf(o), func(r int) bool { return !m.rows[r].share() })
		s.rows[offering] = rows
	}
	need := int64(o.Type.Resources.CPU)
	if slices.ContainsFunc(rows, func(r int) bool { return s.led[r] < need }) {
		return false
	}
	for _, r := range rows {
		s.led[r] -= need
	}
	return true
}
