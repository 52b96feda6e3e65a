package fleet

import (
	"time"

	"drover"
)

// Lists of a cloud lag behind what it does: for a while they may lack what is there, and show what is gone. So an instance that good
// lists lack is held to be gone only
//
//   - once its cloud, asked for that instance, says that there is none, and the instance is older than the lag;
//   - or when it was missing for longer than the lag, and a dial to its address has failed since it was last heard;
//   - or, if no address of it is known, when it was missing for twice the lag.
//
// One that talks to us is not gone, whatever lists say. One whose destruction was accepted need not be dialled.

// The least time between two lists that together say that an instance is gone, where its cloud's lists do not lag. One whose create call
// was not answered is given as much longer, since it may only now come to be, and be new to the lists then; and as long may pass before a cloud lists
// what it has made.
const (
	MissingLeast = time.Second
	LostGap      = 30 * time.Second
)

// MayBeNew reports whether a list that began then may lack the instance only because its cloud has just made it. While neither a list has had it
// nor it was ready, that is measured from when Drover began to look, since the clock may have leapt ahead.
func (in *Member) MayBeNew(began, looking drover.Time, lag time.Duration) bool {
	switch {
	case in.Created == 0:
		return false
	case in.Seen || in.Ready != 0: // a list may still be older than one that had it; of what is destroyed it counts
		return !in.Accepted && began < in.Created.Add(lag)
	case lag > 0:
		lag = max(lag, LostGap)
	}
	return began < max(in.Created, looking).Add(lag)
}

// MissingFor is for how long lists that lag so far have to lack the instance until they prove it gone.
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

// MissedTwice reports whether two good lists have lacked the instance, the last of them, which began then, long enough after the first.
func (in *Member) MissedTwice(began drover.Time, lag time.Duration) bool {
	return in.Missing != 0 && began > in.Missing && began >= in.Missing.Add(in.MissingFor(lag))
}

// Undialled reports whether nobody dials the instance, so that lists alone prove it gone.
func (in *Member) Undialled() bool {
	return in.State == drover.InstanceStopping || in.State == drover.InstanceStopped || in.Broken || in.NoLogin || in.ProviderID == ""
}

// TriedDial reports whether it was tried to reach the instance, which is not heard, as far as its address is known, and no try is under way.
func (in *Member) TriedDial() bool { return in.Dial == 0 && (in.Tried || in.Unlocated) }

// GoingUnlisted reports whether the instance's destruction was accepted and lists lack it: they only have to go on lacking it.
func (in *Member) GoingUnlisted() bool { return in.Accepted && in.Missing != 0 }

// EndListed is when lists say that the instance has ended, if the last of them does; 0 if not.
func (in *Member) EndListed() drover.Time {
	if in.Listed && !in.Ending {
		return 0
	}
	return in.EndTold
}

// ShouldBeHeard reports whether the instance was heard, by this controller or one before, so that its silence means something. A boot has a deadline of
// its own.
func (in *Member) ShouldBeHeard() bool {
	known := in.State.Ready() || in.State == drover.InstanceUnknown
	return known && !in.Broken && !in.NoLogin && (in.Ready != 0 || !in.Begun)
}

// ChosenFrom is the candidate that became the instance, as far as a list shows it; nil if none is known to have.
func (in *Member) ChosenFrom(s Sighting) *drover.Offering {
	for i, o := range in.Candidates {
		if o.Type.ProviderType == s.ProviderType && o.Zone == s.Zone && o.Market == s.Market {
			return &in.Candidates[i]
		}
	}
	return nil
}

// CreatedAt is when the instance was made, of which a list tells first: as its cloud says, if that can be, since it was asked for.
func (in *Member) CreatedAt(s Sighting, now drover.Time) drover.Time {
	if in.Asked <= s.Created && s.Created <= now {
		return s.Created
	}
	return now
}
