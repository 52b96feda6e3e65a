package pack

import (
	"fmt"
	"slices"

	"drover"
)

// why says what kept so many jobs of a demand from being served.
func (m *model) why(d *draft, demand, count, steps int) drover.Unmet {
	u := drover.Unmet{Demand: demand, Count: count, Code: drover.ReasonLimit, Text: "the limit on instances is reached", Refusals: m.refusals(d, demand)}
	switch {
	case steps <= 0:
		u.Code, u.Text = drover.ReasonPlanning, fmt.Sprintf("the plan was cut off after %d steps", m.p.Steps)
	case !slices.ContainsFunc(u.Refusals, func(r drover.Refusal) bool { return r.Code == "limit" }):
		u.Code, u.Text = drover.ReasonBlocked, "every offering that can hold it is blocked"
	}
	return u
}

// refusals counts why the offerings could not serve the rest of a demand.
func (m *model) refusals(d *draft, demand int) (list []drover.Refusal) {
	s := m.p.Demands[demand].Shape
	for _, o := range m.p.Offerings {
		code, text := m.refusal(d, s, o)
		if code == "" {
			continue
		}
		at := slices.IndexFunc(list, func(r drover.Refusal) bool { return r.Code == code })
		if at < 0 {
			at = len(list)
			list = append(list, drover.Refusal{Code: code, Example: fmt.Sprintf("%s %s %s in %s: %s", o.Type.Name, o.Zone, o.Market, o.Cloud, text)})
		}
		list[at].Count++
	}
	slices.SortStableFunc(list, func(a, b drover.Refusal) int { return b.Count - a.Count })
	return list
}

// refusal is why the offering could not serve one more job of the shape: what it lacks, or which limit is reached.
func (m *model) refusal(d *draft, s drover.Shape, o drover.Offering) (code, text string) {
	if text := s.Refuses(o); text != "" {
		return drover.RefusalCode(text), text
	}
	if !m.sized(&o) {
		return "size", "no instance of its size is wanted"
	}
	k := kind{has: m.capacity(&o), limits: m.rowsOf(&o)}
	for _, r := range append([]int{0}, k.limits...) {
		if d.led[r] < m.weight(&k, r) {
			return "limit", m.rows[r].text()
		}
	}
	return "", ""
}
