// Package store keeps the records of a fleet: what was submitted, what became of it, and what it cost, in one SQLite file.
//
// The model. Every table has two kinds of column. Those that people and SQL ask about (states, times, money, exit codes, reasons) are
// plain columns, with money in nano-dollars and times in nanoseconds since 1970. What only the engine needs back is one JSON column
// named engine, which is NULL once the row has left the engine. Begin and Pending read that column; lists take from it only which elements of
// an array wait. An element has a row from its first attempt on: one without waits, or was cancelled together with all others that did.
//
// The invariants:
//   - What a method has acknowledged survives kill -9 and power loss: every transaction is on disk before its method returns.
//   - A method that returns an error has changed nothing.
//   - Commit may be repeated: each write sets its whole row, found by its key.
//   - Wishes of people (jobs to run or to run again, jobs to cancel, verbs for instances) are rows first. Pending and Wishes give them until
//     a Commit consumes them.
//   - A final job stays as it is, unless a person puts it back in the queue: then it waits to be taken like a new one, with a place among
//     those put back by which the engine tells whether it has it already.
//   - No secret is kept: of a token only its hash is.
//   - One connection writes; lists are read from snapshots through others, and neither waits for the other.
//   - One controller at a time: whoever means to Begin holds a Lock. Begin raises the epoch, and every transaction that changes anything
//     checks it: whoever began before can write nothing more. A Store on which Begin was not called is no controller's and does not check.
package store
