// Package deadman is the switch by which an instance that nobody wants any more powers itself off: its controller was
// lost for good, or never got as far as to log in.
//
// It has two ends. A shell script is planted by the instance's init command, so that it is there before anyone can log
// in. It counts the time for which nobody has said that the instance is wanted, and then powers it off. On the other
// end are the runner's processes: the daemon holds the switch while a controller was heard lately, and a supervisor
// while its attempt runs, daemon or not. So the script needs to know nothing of either. Between them is one file, whose
// first line is all there is to the protocol:
//
//	anything that has changed   somebody wants the instance
//	off                         nobody does: power it off now, by one who may
//
// Invariants:
//   - The script counts its own sleeps. Setting a clock neither triggers nor defers it, and time in which the instance
//     was suspended is not counted.
//   - Nothing that is read from the file is ever executed or computed with: whoever runs jobs may write it.
//   - A script whose file cannot be made ends at once: it could not be told that the instance is wanted.
//   - Where the environment names a program that ends the instance, as it does for instances on this host, nothing else
//     is tried.
package deadman

// The environment of an instance that is not a whole machine says where its switch is and what ends it.
const (
	FileVariable     = "DROVER_SWITCH"
	PowerOffVariable = "DROVER_POWEROFF"
)

const (
	defaultFile = "/run/drover-switch"
	offWord     = "off"
)
