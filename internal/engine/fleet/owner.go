package fleet

import "drover"

// Each instance has an owner: the queue, if it was rented for jobs, or the pool named in its record. The owner decides:
//
//   - The queue's instances obey idle_timeout, are given up when nothing waits for them, can be preempted, and obey
//     max_age.
//   - A pool's instances are released only by their pool. They count in every limit except those on a user's instances.
//     The pool pays for them, so jobs on them cost their users nothing. Jobs are placed on them only if the pool allows
//     it.
//   - An instance without login is ready when its cloud says that it runs, and gone when lists say so. Its silence
//     means nothing.

// Pooled reports whether a pool owns the instance, configured or not.
func (in *Member) Pooled() bool { return in.Pool != "" }

// Awaited reports whether the owner still wants an instance that is coming or unknown.
func (in *Member) Awaited() bool { return in.Pooled() || len(in.Reservations) > 0 }

// Idles reports whether the instance is destroyed after being idle for long enough.
func (in *Member) Idles() bool { return !in.Pooled() }

// Yields reports whether the instance may be preempted.
func (in *Member) Yields() bool { return !in.Pooled() }

// Stays reports whether the instance is kept even if nothing runs on it.
func (in *Member) Stays() bool {
	return in.Pooled() && in.Idle != drover.IdleDrain && in.State != drover.InstanceStopping && !in.Broken && in.Reclaimed == nil && in.Unhealthy == nil
}
