// Package remote connects a controller to an instance: it logs in over SSH, verifies the instance's identity, deploys
// the runner and talks to it.
//
// [Connect] takes the steps to a [Conn] in this order. Each has its own deadline, which fires even if the other side
// hangs:
//
//	dial → handshake → host key → login → planted secret, if that is the proof → runner deployed → boot probe → Hello both ways
//
// If the boot probe fails, the runner is contacted anyway, and the connection is kept if the runner has attempts.
//
// A Conn has one control stream, served by [Conn.Run], and bulk channels for large data. A bulk channel is opened when
// needed, and closed after a few seconds idle or when the instance's server accepts no more channels. SSH gives each
// channel its own window, so no transfer holds up the control stream.
//
// Invariants:
//   - No host key is trusted because it was the first to be seen. The controller logs in only after it has verified the
//     key, unless the proof itself is read over the connection: the planted secret, or the output of a command.
//   - On every Connect, the runner's content is compared with ours before the runner is used: jobs run as the same user
//     and could have changed it.
//   - What an instance sends is never trusted: lines, texts and noise are bounded, and it gets only the blobs of the
//     attempt that is being started.
//   - If [Conn.Start] returns an error that is not transient, the attempt does not run and never will.
//   - Nothing here retries by itself. The caller decides.
package remote
