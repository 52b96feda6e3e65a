package fleet

import "drover"

// Somebody owns each instance: the queue, if it was rented for jobs, or the pool whose name it bears. What may be done with an instance is asked here.
//
//   - The queue's meets idle_timeout, is given up when nothing waits for it, gives way to other work, and ages by the fleet's max_age.
//   - A pool's is there because its pool wants it: only its pool releases it, for whatever reason. It counts in every limit. The pool pays for it, so jobs on
//     it cost their users nothing. Jobs are placed on it only if the pool lets them.
//   - One that Drover does not log in to is ready when its cloud says that it runs, and gone when lists say so. Silence says nothing of it.

// Pooled reports whether a pool owns the instance, configured or not.
func (in *Member) Pooled() bool { return in.Pool != "" }

// Awaited reports whether an instance that is on its way, or that does not answer yet, is still wanted by its owner.
func (in *Member) Awaited() bool { return in.Pooled() || len(in.Reservations) > 0 }

// Idles reports whether the instance goes once it has been idle for long enough.
func (in *Member) Idles() bool { return !in.Pooled() }

// Yields reports whether the instance may make way for waiting work.
func (in *Member) Yields() bool { return !in.Pooled() }

// Stays reports whether the instance is kept whether or not anything runs on it.
func (in *Member) Stays() bool {
	return in.Pooled() && in.Idle != drover.IdleDrain && in.State != drover.InstanceStopping && !in.Broken && in.Reclaimed == nil && in.Unhealthy == nil
}
