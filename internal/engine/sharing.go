package engine

import (
	"drover"
	"drover/internal/engine/fleet"
)

// With drover.ShareUser an instance runs the jobs of one user alone, from the first until it is gone: what a job leaves there, or changes, is its own
// user's. With drover.ShareEveryone it runs everybody's, and its runner keeps them apart. A tag says whose it is, given as it is created, so that this
// holds even if the store is lost.

// own gives an instance that is to be rented for a user's jobs to whom it will be.
func (e *Engine) own(in *fleet.Member, user string) {
	switch e.life().Sharing {
	case drover.ShareUser:
		in.User, in.Owner = user, drover.OwnerMark(user)
	case drover.ShareEveryone:
		in.Owner = drover.Everyones
	}
}

// belong notes whose job begins on an instance. One that was nobody's, or whose user only its tag tells, is that user's from then on.
func (e *Engine) belong(in *fleet.Member, user string) {
	if in.Sharing != drover.ShareUser || in.User == user && in.Owner != "" {
		return
	}
	if in.Owner == "" {
		e.retag(in)
	}
	e.own(in, user)
	e.fleet.Moved()
	e.writeInstance(in)
}

// whose says who alone may use the instance, if not everybody.
func whose(in *fleet.Member) string {
	switch {
	case in.User != "":
		return "; it is user " + in.User + "'s, and runs no other user's jobs"
	case in.Owner != "" && !in.Isolated():
		return "; its tag says that it belongs to its earlier user, and it runs no other user's jobs"
	case in.Sharing == drover.ShareUser && (in.Isolated() || in.Used):
		return "; another user may have used it, so it runs no more jobs"
	case in.Sharing == drover.ShareEveryone && !in.Isolated():
		return "; it was created before users' jobs were isolated, and runs no more jobs"
	}
	return ""
}

// ofOneUser is what of the demands, each of a group, is planned for together where instances belong to users: the first user's, as far as they do not
// come before others of higher priority. The rest have the next plans.
func (e *Engine) ofOneUser(demands []drover.Demand, groups []*group) (some []drover.Demand, of []*group) {
	if e.life().Sharing != drover.ShareUser {
		return demands, groups
	}
	highest := 0 // of the others
	for i, g := range groups {
		if g.Key.User != groups[0].Key.User {
			highest = max(highest, g.Key.Priority)
		} else if g.Key.Priority >= highest {
			some, of = append(some, demands[i]), append(of, g)
		}
	}
	return some, of
}
