// Package store keeps the records of a fleet in one SQLite file: what was submitted, what became of it, and what it
// cost.
//
// Every table has two kinds of column. What people and SQL query (states, times, money, exit codes, reasons) is in
// plain columns, with money in nano-dollars and times in nanoseconds since 1970. What only the engine needs back is one
// JSON column named engine, which is NULL once the row has left the engine. Begin and Pending read that column; lists
// take from it only which elements of an array wait. An element has a row from its first attempt on: one without a row
// waits, or was cancelled together with all others that waited.
//
// The invariants:
//   - What a method has acknowledged survives kill -9 and power loss: every transaction is on disk before its method
//     returns.
//   - A method that returns an error has changed nothing.
//   - Commit may be repeated: each write sets its whole row, found by its key.
//   - Requests (jobs to run, retry or cancel, verbs for instances) are rows first. Pending and Wishes return them
//     until a Commit consumes them.
//   - A final job never changes, unless a person puts it back in the queue: then it waits like a new one. It gets a
//     number, counted over all jobs put back, that shows whether the engine has taken it already.
//   - No secret is stored: only the hash of a token.
//   - One connection writes; lists are read from snapshots through others, and neither waits for the other.
//   - One controller at a time: whoever calls Begin must hold a Lock. Begin raises the epoch, and every changing
//     transaction checks it, so an older controller can write nothing more. A Store without Begin belongs to no
//     controller and does not check.
package store
