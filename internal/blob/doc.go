// Package blob keeps what is too large for the records: the contents that jobs are given, and the logs and outputs that they leave.
//
// A Dir holds contents under the SHA-256 of what they are, so that a file that a thousand jobs share is kept once and nothing in it ever
// changes. Results is the folder in which a person finds what a batch left: JOB/[INDEX/]… for outputs, logs/JOB[.INDEX].out and .err for
// the output streams.
//
// The invariants:
//   - A name never stands for half of something. What is written goes to a place that is swept at the next opening, is on disk before it
//     gets its name, and gets it by a rename.
//   - Nothing that is opened, whatever it is called, lies outside the folder of the element it belongs to.
//   - Nothing that an instance sends leads out of the folder of the element it belongs to, becomes anything but a plain file or folder, or
//     grows over the limits.
//   - One process at a time has a Dir or Results open. Within it every method may be called at any time by anyone, as long as no two
//     receive the same element.
package blob
