package engine

import "drover"

// With drover.ShareUser an instance runs the jobs of one user alone, from the first until it is gone: what a job leaves there, or changes, is its own
// user's. With drover.ShareEveryone it runs everybody's, and its runner keeps them apart. A tag says whose it is, given as it is created, so that this
// holds even if the store is lost.

// own gives an instance that is to be rented for a user's jobs to whom it will be.
func (e *Engine) own(in *instance, user string) {
	switch e.life().Sharing {
	case drover.ShareUser:
		in.User, in.Owner = user, drover.OwnerMark(user)
	case drover.ShareEveryone:
		in.Owner = drover.Everyones
	}
}

// belong notes whose job begins on an instance. One that was nobody's, or whose user only its tag tells, is that user's from then on.
func (e *Engine) belong(in *instance, user string) {
	if in.sharing != drover.ShareUser || in.User == user && in.Owner != "" {
		return
	}
	if in.Owner == "" {
		e.retag(in)
	}
	e.own(in, user)
	e.fleet++
	e.writeInstance(in)
}

// apart reports whether what runs on the instance is kept apart.
func (in *instance) apart() bool { return in.Owner == drover.Everyones }

// serves reports whether the instance may run the group's jobs, whatever room it has. What belongs to a user stays that user's, whatever the
// configuration says later, and what is not as it says runs no more jobs.
func (in *instance) serves(g *group) bool {
	switch {
	case in.noJobs:
		return false
	case in.Owner == g.mark:
		return true
	case in.sharing == drover.ShareUser:
		return in.Owner == "" && !in.Used
	case in.sharing == drover.ShareEveryone:
		return in.apart()
	}
	return in.Owner == ""
}

// whose says who alone may use the instance, if not everybody.
func (in *instance) whose() string {
	switch {
	case in.User != "":
		return "; it is user " + in.User + "'s, and runs no other user's jobs"
	case in.Owner != "" && !in.apart():
		return "; its tag says that it is the user's who had it before, and it runs no other user's jobs"
	case in.sharing == drover.ShareUser && (in.apart() || in.Used):
		return "; it was used while users shared instances, and runs no more jobs"
	case in.sharing == drover.ShareEveryone && !in.apart():
		return "; it was made before users' jobs were kept apart, and runs no more"
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
