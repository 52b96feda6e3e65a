package fleet

import (
	"time"

	"drover"
)

// Lists lag: for a while they may miss instances that exist and show ones that are gone. So an instance missing from
// good lists counts as gone only
//
//   - once its cloud, asked for that instance, says that it does not exist, and the instance is older than the lag;
//   - or when it was missing for longer than the lag, and a dial to its address has failed since the last contact;
//   - or, if its address is unknown, when it was missing for twice the lag.
//
// A connected instance is not gone, whatever lists say. One whose destruction was accepted need not be dialled.

// MissingLeast is the least time between two lists that together prove an instance gone, if its cloud's lists do not
// lag. LostGap is added for an instance whose create call was not answered, since it may be created late and be new to
// the lists then; a cloud may also take that long to list a new instance.
const (
	MissingLeast = time.Second
	LostGap      = 30 * time.Second
)

// MayBeNew reports whether a list that began at a given time may miss the instance only because it was just created.
// Until a list has had it or it was ready, that is measured from when the controller started looking, since the clock
// may have jumped ahead.
func (in *Member) MayBeNew(began, looking drover.Time, lag time.Duration) bool {
	switch {
	case in.Created == 0:
		return false
	case in.Seen || in.Ready != 0: // a list may still be older than one that had it; after a destroy call, its absence counts
		return !in.Accepted && began < in.Created.Add(lag)
	case lag > 0:
		lag = max(lag, LostGap)
	}
	return began < max(in.Created, looking).Add(lag)
}

// MissingFor returns for how long lists with this lag must miss the instance to prove it gone.
func (in *Member) MissingFor(lag time.Duration) time.Duration {
	switch {
	case in.Accepted:
		return lag
	case in.ProviderID == "":
		return max(LostGap+lag, 2*lag)
	case in.Unlocated:
		return max(MissingLeast, 2*lag)
	default:
		return max(MissingLeast, lag)
	}
}

// MissedTwice reports whether two good lists have missed the instance, the last of which began long enough after the
// first.
func (in *Member) MissedTwice(began drover.Time, lag time.Duration) bool {
	return in.Missing != 0 && began > in.Missing && began >= in.Missing.Add(in.MissingFor(lag))
}

// Undialled reports whether nobody dials the instance, so that lists alone prove it gone.
func (in *Member) Undialled() bool {
	return in.State == drover.InstanceStopping || in.State == drover.InstanceStopped || in.Broken || in.NoLogin || in.ProviderID == ""
}

// TriedDial reports whether an unconnected instance was dialled, or has no known address, and no dial is in progress.
func (in *Member) TriedDial() bool { return in.Dial == 0 && (in.Tried || in.Unlocated) }

// GoingUnlisted reports whether the instance's destruction was accepted and lists miss it: they only have to keep
// missing it.
func (in *Member) GoingUnlisted() bool { return in.Accepted && in.Missing != 0 }

// EndListed returns when the instance ended according to lists, if the last one says so; otherwise 0.
func (in *Member) EndListed() drover.Time {
	if in.Listed && !in.Ending {
		return 0
	}
	return in.EndTold
}

// ShouldBeConnected reports whether the instance has been connected to this or an earlier controller, so that its
// silence means something. A boot has its own deadline.
func (in *Member) ShouldBeConnected() bool {
	known := in.State.Ready() || in.State == drover.InstanceUnknown
	return known && !in.Broken && !in.NoLogin && (in.Ready != 0 || !in.Begun)
}

// ChosenFrom returns the candidate that became the instance, according to a list; nil if unknown.
func (in *Member) ChosenFrom(s Sighting) *drover.Offering {
	for i, o := range in.Candidates {
		if o.Type.ProviderType == s.ProviderType && o.Zone == s.Zone && o.Market == s.Market {
			return &in.Candidates[i]
		}
	}
	return nil
}

// CreatedAt returns when an instance was created that a list shows first: according to its cloud if that is possible,
// otherwise now.
func (in *Member) CreatedAt(s Sighting, now drover.Time) drover.Time {
	if in.Asked <= s.Created && s.Created <= now {
		return s.Created
	}
	return now
}
