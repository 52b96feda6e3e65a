package pack

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
)

// why returns what prevented count jobs of a demand from being served.
func (m *model) why(d *draft, demand, count int) drover.Unmet {
	u := drover.Unmet{Demand: demand, Count: count, Refusals: m.refusals(d, demand)}
	limit := slices.IndexFunc(u.Refusals, func(r drover.Refusal) bool { return r.Code == "limit" })
	switch {
	case limit < 0 && slices.ContainsFunc(u.Refusals, func(r drover.Refusal) bool { return r.Code == shareCode }):
		u.Code, u.Text = drover.ReasonLimit, shareText
	case limit < 0:
		u.Code, u.Text = drover.ReasonBlocked, "every offering that fits is blocked"
	default:
		u.Code = drover.ReasonLimit
		u.Text = u.Refusals[limit].Text
	}
	return u
}

// refusals counts why the offerings could not serve the rest of a demand, each cause with the offering that comes
// nearest or, if the cause is not an amount, the cheapest.
func (m *model) refusals(d *draft, demand int) (list []drover.Refusal) {
	asked := m.p.Demands[demand]
	var nearest []drover.Offering
	for _, o := range m.p.Offerings {
		code, text := m.refusal(d, asked, o)
		if code == "" {
			continue
		}
		at := slices.IndexFunc(list, func(r drover.Refusal) bool { return r.Code == code })
		if at < 0 {
			at = len(list)
			list, nearest = append(list, drover.Refusal{Code: code}), append(nearest, o)
		}
		if list[at].Count++; list[at].Count == 1 || nearer(code, o, nearest[at]) {
			nearest[at], list[at].Offering, list[at].Text = o, o.Name(), text
		}
	}
	slices.SortStableFunc(list, func(a, b drover.Refusal) int { return b.Count - a.Count })
	return list
}

// nearer reports whether an offering is nearer to serving a demand than another that is refused for the same reason.
func nearer(code string, o, than drover.Offering) bool {
	return cmp.Or(cmp.Compare(than.Type.Resources.Amount(code), o.Type.Resources.Amount(code)), cmp.Compare(o.Price, than.Price)) < 0
}

// refusal returns why the offering could not serve one more job of a demand: what it is missing, its cost, or a reached
// limit.
func (m *model) refusal(d *draft, asked drover.Demand, o drover.Offering) (code, text string) {
	if misfit := asked.Shape.Misfit(o); misfit.Check != "" {
		return misfit.Check, misfit.String()
	}
	if !asked.Affords(o) {
		return "dear", fmt.Sprintf("it costs %v an hour, %v per vCPU: more than the budget allows", o.Price, o.VCPUPrice())
	}
	k := kind{has: m.capacity(&o), limits: m.rowsOf(&o)}
	for _, r := range append([]int{0}, k.limits...) {
		if d.led[r] < m.weight(&k, r) {
			if m.rows[r].share() { // shares come last
				return shareCode, m.rows[r].text()
			}
			return "limit", m.rows[r].text()
		}
	}
	return "", ""
}
