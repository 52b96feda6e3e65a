// Package benchfleet measures a controller against a fleet of a hundred instances within one process. Everything of the
// controller is real: control, engine, pack, the records on disk with their syncs, the recording, and SSH over TCP on
// the loopback. Of an instance only what runs inside it is modelled. It is an SSH server with a planted host key and
// one login key. A runner is deployed on it, is found again by its hash, and speaks package wire; its jobs are a timer,
// or nothing at all.
//
// The counts show how good a run was: every attempt that was started, on which instance and how often, how many
// instances the cloud created, and how much of the paid time was used.
//
// The invariants: a cloud never has more instances than its quota; an instance never runs more than fits on it, which
// would count as a fault; nothing is left once a fleet is closed.
package benchfleet
