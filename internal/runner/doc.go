// Package runner is the program that a controller puts on a VM and talks to over SSH.
//
// It runs as four kinds of process, each of which may die without the others:
//
//	control, bulk   one per SSH channel; carries bytes between the channel and the daemon's socket, and starts the daemon if none runs
//	daemon          one per folder; speaks package wire, keeps the attempts' folders, the blobs and the fences
//	supervise       one per running attempt, in its own session; starts the command, ends it, reports how it ended
//	init            the first process of each container; starts the command in it, as a supervisor does outside
//
// A supervisor serves one attempt at a time and is kept for the next, since starting a process costs more than a short
// job does. It depends on no other process: if the daemon dies, it continues, enforces the timeout and leaves the
// result in the attempt's folder.
//
// A command runs directly on the instance, in a control group that limits it if one can be made, or in a container of
// its image: see sandbox. Either way it runs in the attempt's working folder, and the processes that it leaves behind
// end with it. The daemon fetches the image before it hands the attempt to a supervisor.
//
// All persistent state is in the folder:
//
//	epoch, fence, identity     what must outlive the daemon: see fence and identity
//	orders, heard, notice      a controller's orders, when one was last heard, the cloud's notice in force
//	sock, *.lock, daemon.log   the daemon's own files
//	blobs/HASH                 inputs by content
//	trash/                     folders that are being deleted
//	attempts/17.3-1/           one attempt, see [folder]
//
// Invariants:
//   - A folder has at most one daemon (flock), and a daemon at most one control stream: the one with the newest epoch,
//     or the later of equals.
//   - An attempt's command is started at most once. The first process to lock the attempt decides: a supervisor begins
//     it, a daemon that finds it unbegun abandons it. A Start whose number is not above the highest begun of its job
//     starts nothing.
//   - An instance that no controller wants powers itself off, see package deadman: it has heard from no controller and
//     had no attempt for as long as the orders allow. That time counts anew from the end of each attempt.
//   - Once the cloud gives notice that it will reclaim the instance, no attempt begins, and the runner ends the running
//     attempts in time, without a controller.
//   - Exited is sent only when no process of the attempt runs any more.
//   - Results from before a restart of the VM are not trusted: such a result may describe outputs that never reached
//     the disk, so that attempt is lost. In return no result waits for the disk.
//   - Nothing that a controller or a job does makes memory grow without bound, and nothing waits for a slow or absent
//     controller.
package runner
