package engine

import (
	"drover"
	"drover/internal/engine/fleet"
)

// With drover.ShareUser an instance runs one user's jobs only, from the first until it is gone: whatever jobs leave or
// change there stays with their user. With drover.ShareEveryone it runs everybody's, and its runner isolates them. A
// tag, set at creation, names the owner, so that this holds even if the store is lost.

// setOwner sets the owner of an instance that is rented for a user's jobs.
func (e *Engine) setOwner(in *fleet.Member, user string) {
	switch e.life().Sharing {
	case drover.ShareUser:
		in.User, in.Owner = user, drover.OwnerMark(user)
	case drover.ShareEveryone:
		in.Owner = drover.Everyones
	}
}

// takeOwner records whose job starts on an instance. An instance without owner, or whose owner only the tag names,
// belongs to that user from then on.
func (e *Engine) takeOwner(in *fleet.Member, user string) {
	if in.Sharing != drover.ShareUser || in.User == user && in.Owner != "" {
		return
	}
	if in.Owner == "" {
		e.retag(in)
	}
	e.setOwner(in, user)
	e.fleet.Revise(in)
	e.writeInstance(in)
}

// whose says who may use the instance, if not everybody.
func whose(in *fleet.Member) string {
	switch {
	case in.User != "":
		return "; it belongs to user " + in.User + " and runs no other user's jobs"
	case in.Owner != "" && !in.Isolated():
		return "; its tag names an earlier user, so it runs no other user's jobs"
	case in.Sharing == drover.ShareUser && (in.Isolated() || in.Used):
		return "; another user may have used it, so it runs no more jobs"
	case in.Sharing == drover.ShareEveryone && !in.Isolated():
		return "; it was created before users' jobs were isolated, and runs no more jobs"
	}
	return ""
}

// ofOneUser selects the demands to plan together where instances belong to users: the first user's, as long as no other
// user's have higher priority. The next plans are for the others.
func (e *Engine) ofOneUser(demands []drover.Demand, groups []*group) (some []drover.Demand, of []*group) {
	if e.life().Sharing != drover.ShareUser {
		return demands, groups
	}
	some, of = make([]drover.Demand, 0, len(demands)), make([]*group, 0, len(groups))
	highest := 0 // of the other users
	for i, g := range groups {
		if g.Key.User != groups[0].Key.User {
			highest = max(highest, g.Key.Priority)
		} else if g.Key.Priority >= highest {
			some, of = append(some, demands[i]), append(of, g)
		}
	}
	return some, of
}
