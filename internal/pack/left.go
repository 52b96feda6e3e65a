package pack

import "slices"

// sharesLeft is what is left of each share when all of a plan are instances of what was chosen first. A candidate beside that takes its part of it
// as well, so that whichever of them the cloud makes, no share is passed.
type sharesLeft struct {
	led  ledger
	rows map[int][]int // those of shares that an offering counts against, once it was asked
}

// sharesLeft is nil where there are no shares.
func (m *model) sharesLeft(led ledger) *sharesLeft {
	if !slices.ContainsFunc(m.rows, row.share) {
		return nil
	}
	return &sharesLeft{slices.Clone(led), map[int][]int{}}
}

// take takes what one instance of an offering would have, if all its shares have that.
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
