package pack

import (
	"slices"

	"drover"
)

// row is a limit of the ledger: on the number of instances, or on their vCPUs.
type row struct {
	limit *drover.Limit // nil for the limits on all instances and on a cloud's
	cloud string
	cpu   bool // counts vCPUs
	room  int64
}

// addRows lists the limits. Row 0 is the limit on all instances.
func (m *model) addRows() {
	m.rows = append(m.rows, row{room: int64(m.p.Room)})
	for _, c := range m.p.Clouds {
		m.rows = append(m.rows, row{cloud: c.Cloud, room: int64(c.Room)})
	}
	for i := range m.p.Limits {
		l := &m.p.Limits[i]
		if l.Instances != nil {
			m.rows = append(m.rows, row{limit: l, room: int64(*l.Instances)})
		}
		if l.CPU != nil {
			m.rows = append(m.rows, row{limit: l, room: int64(*l.CPU), cpu: true})
		}
	}
}

// limitsWholeClouds reports whether all offerings of a cloud have the same limits.
func (m *model) limitsWholeClouds() bool {
	return !slices.ContainsFunc(m.p.Limits, func(l drover.Limit) bool { return l.Zone != "" || l.Type != "" || l.Market != "" || l.QuotaGroup != "" })
}

// rowsOf lists the rows that an instance of the offering counts against, except row 0, which applies to all.
func (m *model) rowsOf(o *drover.Offering) (rows []int) {
	for i, r := range m.rows[1:] {
		if r.limit != nil && r.limit.Covers(*o) || r.limit == nil && r.cloud == o.Cloud {
			rows = append(rows, i+1)
		}
	}
	return rows
}

// ledger is how much of each row is left.
type ledger []int64

func (m *model) newLedger() ledger {
	l := make(ledger, len(m.rows))
	for i, r := range m.rows {
		l[i] = r.room
	}
	return l
}

// weight returns what an instance of the kind counts against a row.
func (m *model) weight(k *kind, r int) int64 {
	if m.rows[r].cpu {
		return k.has[cpu]
	}
	return 1
}

// room returns how many instances of the kind may still be added, at most most.
func (m *model) room(l ledger, k *kind, most int) int {
	n := min(int64(most), l[0])
	for _, r := range k.limits {
		if w := m.weight(k, r); w > 0 {
			n = min(n, l[r]/w)
		}
	}
	return int(max(0, n))
}

// take books n instances of the kind; a negative n returns them.
func (m *model) take(l ledger, k *kind, n int) {
	l[0] -= int64(n)
	for _, r := range k.limits {
		l[r] -= int64(n) * m.weight(k, r)
	}
}

// shareCode and shareText report that an offering has reached its share.
const (
	shareCode = "spread"
	shareText = "it has reached its share of all vCPUs"
)

// share reports whether the row is a share.
func (r row) share() bool { return r.limit != nil && r.limit.Share }

// text describes the limit as reached.
func (r row) text() string {
	switch {
	case r.share():
		return shareText
	case r.limit != nil:
		return r.limit.Name() + " is reached"
	case r.cloud != "":
		return "the limit on instances in " + r.cloud + " is reached"
	}
	return "the limit on instances is reached"
}
