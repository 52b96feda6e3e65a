// Package runner is the instance's end of Drover: the program that a controller puts on a VM and talks to over SSH.
//
// It is four kinds of process, each of which may die without taking the others along:
//
//	control, bulk   one per SSH channel; carries bytes between the channel and the daemon's socket, and starts the daemon if none runs
//	daemon          one per folder; speaks package wire, keeps the attempts' folders, the blobs and the fences
//	supervise       one per running attempt, in a session of its own; starts the command, ends it, says how it ended
//	init            the first of each container; starts the command in it, as a supervisor does outside
//
// A supervisor serves one attempt at a time and is kept for the next, since starting a process costs more than a short
// job does. It depends on nobody: when the daemon is gone it goes on, enforces the timeout and leaves the result in the
// attempt's folder.
//
// A command runs straight on the instance, in a control group that limits it where one can be made, or in a container
// of its image: see place. Either way its working folder is the attempt's, and what it leaves behind ends with it.
// Images are fetched by the daemon, before the attempt is handed to a supervisor.
//
// The folder is the only memory:
//
//	epoch, fence, identity     what must outlive the daemon: see fences and identity
//	orders, heard, notice      so must what a controller ordered, when one was heard, and the cloud's notice
//	sock, *.lock, daemon.log   the daemon's
//	blobs/HASH                 inputs by content
//	trash/                     what is being deleted
//	attempts/17.3-1/           one attempt, see [folder]
//
// Invariants:
//   - A folder has at most one daemon (flock), and a daemon at most one control stream: the one with the newest epoch,
//     or the later of equals.
//   - An attempt's command is started at most once. Whoever first locks the attempt decides: a supervisor begins it, a
//     daemon that finds it unbegun abandons it. An attempt number at or below the highest begun of its job is never
//     begun, unless it is that very attempt.
//   - An instance that nobody wants powers itself off, see package deadman: no word from any controller and no attempt
//     for as long as the orders allow. An attempt that has ended is a reason to stay for as long again, and no longer.
//   - Once the cloud says that it takes the instance back nothing begins here, and what runs is told, in time and
//     without a controller.
//   - Exited is sent when nothing of the attempt runs any more.
//   - What outlives a restart of the VM is not trusted: a result written in an earlier boot may vouch for outputs that
//     never reached the disk, so that attempt is lost. In return no result waits for the disk.
//   - Nothing that a controller or a job does makes memory grow without bound, and nothing waits for a slow or absent
//     controller.
package runner
