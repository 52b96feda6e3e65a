package store

import (
	"syscall"
	"time"
)

// changedAt returns when a file or its metadata last changed.
func changedAt(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctim.Unix()) }
