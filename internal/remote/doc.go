// Package remote is the controller's end of an instance: it logs in over SSH, makes sure of who answers, puts the
// runner there and talks to it.
//
// [Connect] takes the steps to a [Conn] in this order, each with a deadline of its own that fires even if the other
// side hangs:
//
//	dial → handshake → host key → login → planted secret, if that is the proof → runner deployed → boot probe → Hello both ways
//
// An instance that fails its boot probe is asked what it has all the same, and is connected to while attempts run
// there.
//
// A Conn has one control stream, served by [Conn.Run], and bulk channels that are opened when something large travels
// and closed when they have been idle for a few seconds, or when the instance's server has no room for another. SSH
// gives each channel a window of its own, so no transfer holds up the control stream.
//
// Invariants:
//   - No host key is trusted because it was the first to be seen, and nothing is sent to log in before it is proved.
//   - The runner is asked for nothing before its content was compared with ours, on every Connect: jobs run as the same
//     user and could have changed it.
//   - What an instance sends is never trusted: lines, texts and noise are bounded, and it is given only the blobs of
//     the attempt that is being started.
//   - An error of [Conn.Start] other than a transient one means that the attempt does not run and never will.
//   - Nothing here tries again by itself. Whoever asked decides.
package remote
