package store

import (
	"syscall"
	"time"
)

// changedAt is when a file, or what is said of it, was last changed.
func changedAt(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctimespec.Unix()) }
