// Package benchfleet measures a controller against a fleet of a hundred instances within one process. Everything of the
// controller is real: control, engine, pack, the records on disk with their syncs, the recording, and SSH over TCP on
// the loopback. Only the inside of an instance is modelled: an SSH server with a planted host key and one login key.
// The controller deploys a runner there and finds it again by its hash. The runner speaks the protocol of package wire;
// its jobs are timers, or end immediately.
//
// The counts show how good a run was: every attempt that started, on which instance and how often, how many instances
// the cloud created, and how much of the paid time was used.
//
// The invariants: a cloud never has more instances than its quota; an instance never runs more than fits on it, which
// would count as a fault; nothing is left once a fleet is closed.
package benchfleet
