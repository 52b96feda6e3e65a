// Package deadman is the switch that powers off an instance which nobody wants any more: its controller was lost
// permanently, or never logged in.
//
// It has two ends. At one end is a shell script, which the instance's init command plants, so that it runs before
// anyone can log in. The script powers the instance off once nobody has held the switch for a given time. At the other
// end are the runner's processes: the daemon holds the switch while a controller has been heard recently, and a
// supervisor while its attempt runs, even without a daemon. So the script need not know about either. They communicate
// through the first line of one file:
//
//	anything that has changed   somebody wants the instance
//	off                         nobody does: the script, which has the rights, must power it off now
//
// Invariants:
//   - The script counts its own sleeps. Setting a clock neither triggers nor defers it, and time while the instance is
//     suspended does not count.
//   - The script never executes or evaluates what it reads from the file: jobs may be able to write it.
//   - If the script cannot create its file, it exits at once: it could not learn that the instance is wanted.
//   - If the environment names a program that ends the instance, as it does for local instances, nothing else is tried.
package deadman

// In an instance that is not a VM, these environment variables name its switch's file and the program that ends it.
const (
	FileVariable     = "DROVER_SWITCH"
	PowerOffVariable = "DROVER_POWEROFF"
)

const (
	defaultFile = "/run/drover-switch"
	offWord     = "off"
)
