// Package store keeps the records of a fleet: what was submitted, what became of it, and what it cost, in one SQLite file.
//
// The model. Every table has two kinds of column. Those that people and SQL ask about (states, times, money, exit codes, reasons) are
// plain columns, with money in nano-dollars and times in nanoseconds since 1970. What only the engine needs back is one JSON column
// named engine, which is NULL once the row has left the engine. Begin and Pending read that column, and nothing else does.
//
// The invariants:
//   - What a method has acknowledged survives kill -9 and power loss: every transaction is on disk before its method returns.
//   - A method that returns an error has changed nothing.
//   - Commit may be repeated: each write sets its whole row, found by its key.
//   - Wishes of people (jobs to run, jobs to cancel) are rows first. Pending and Wishes give them until a Commit consumes them.
//   - One connection writes; lists are read from snapshots through others, and neither waits for the other.
//   - One controller at a time: whoever means to Begin holds a Lock. Begin raises the epoch, which fences whoever was before.
package store
