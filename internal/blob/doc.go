// Package blob keeps what is too large for the records: the contents of jobs' inputs, and their logs and outputs.
//
// A Dir stores contents by SHA-256, so a file that a thousand jobs share is stored once, and stored contents never
// change. Results is the folder in which a person finds the results of a batch: JOB/[INDEX/]… for outputs,
// logs/JOB[.INDEX].out and .err for the output streams.
//
// The invariants:
//   - A name never stands for incomplete content. New content is written to a place that is swept at the next opening,
//     synced, and renamed.
//   - Nothing that is opened, whatever it is called, lies outside the folder of the element it belongs to.
//   - Nothing that an instance sends leads out of the folder of the element it belongs to, becomes anything but a plain
//     file or folder, or grows over the limits.
//   - One process at a time has a Dir or Results open. Within it, methods may be called concurrently, except that each
//     element has one receiver at a time.
package blob
