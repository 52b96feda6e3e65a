// Package benchfleet measures a controller against a fleet of a hundred instances within one process: everything of the
// controller is real (control, engine, pack, the records on disk with their syncs, the recording, SSH over TCP on the
// loopback), and of an instance all but what would run inside it. An instance here is an SSH server with a planted host
// key and one login key, on which a runner is deployed, found again by its hash, and speaks package wire; its jobs are
// a timer, or nothing at all.
//
// What is counted tells what a run is worth: every attempt that was started, on which instance and how often, how many
// instances the cloud made, and how much of what was paid for was used.
//
// The invariants: a cloud never has more instances than its quota; an instance never runs more than fits it, which is
// counted as a fault; nothing is left once a Fleet is closed.
package benchfleet
