package engine

import "drover"

// Where instances belong to users, an instance runs the jobs of one user alone, from the first until it is gone: what a job leaves there, or changes,
// is its own user's. A tag says whose it is, given as it is created, so that this holds even if the store is lost.

// own gives the instance to a user.
func (in *instance) own(user string) { in.User, in.Owner = user, drover.OwnerMark(user) }

// belong notes whose job begins on an instance. One that was nobody's, or whose user only its tag tells, is that user's from then on.
func (e *Engine) belong(in *instance, user string) {
	if !in.perUser || in.User == user && in.Owner != "" {
		return
	}
	if in.Owner == "" {
		e.retag(in)
	}
	in.own(user)
	e.writeInstance(in)
}

// serves reports whether the instance may run the group's jobs, whatever room it has. What was used before instances belonged to users may hold
// anybody's work, and what belongs to one stays that user's when they do no more.
func (in *instance) serves(g *group) bool {
	return in.Owner == g.mark || in.Owner == "" && !(in.perUser && in.Used)
}

// whose says who alone may use the instance, if not everybody.
func (in *instance) whose() string {
	switch {
	case in.User != "":
		return "; it is user " + in.User + "'s, and runs no other user's jobs"
	case in.Owner != "":
		return "; its tag says that it is the user's who had it before, and it runs no other user's jobs"
	case in.perUser && in.Used:
		return "; it was used while users shared instances, and runs no more jobs"
	}
	return ""
}

// ofOneUser is what of the demands, each of a group, is planned for together where instances belong to users: the first user's, as far as they do not
// come before others of higher priority. The rest have the next plans.
func (e *Engine) ofOneUser(demands []drover.Demand, groups []*group) (some []drover.Demand, of []*group) {
	if !e.life().PerUser {
		return demands, groups
	}
	highest := 0 // of the others
	for i, g := range groups {
		if g.key.User != groups[0].key.User {
			highest = max(highest, g.key.Priority)
		} else if g.key.Priority >= highest {
			some, of = append(some, demands[i]), append(of, g)
		}
	}
	return some, of
}
