package local

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// errs is the table of errors of this host.
var errs = kit.Errors{
	Read: read,
	Table: slices.Concat(
		kit.Means(drover.KindNotFound, "", "ENOENT"),
		kit.Means(drover.KindAuthentication, "", "EPERM", "EACCES"),
		kit.Means(drover.KindQuota, drover.ScopeAll, "EDQUOT"),
		kit.Means(drover.KindCapacity, drover.ScopeAll, "ENOSPC", "EAGAIN", "ENOMEM", "EMFILE", "ENFILE"), // EAGAIN: no more processes
	),
}

// read returns the kernel's error.
func read(err error) (a kit.Answer, ok bool) {
	var number syscall.Errno
	if errors.Is(err, fs.ErrNotExist) {
		number = syscall.ENOENT
	} else if !errors.As(err, &number) {
		return a, false
	}
	return kit.Answer{Code: unix.ErrnoName(number), Message: err.Error()}, true
}

func notFound(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	return errs.Classify("read instance "+id, err)
}

func errQuota(limit int) error {
	return &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll,
		Message: fmt.Sprintf("the fleet may have at most %d instances", limit)}
}

func errCapacity(c driver.Candidate) error {
	return &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: c.Market,
		Message: fmt.Sprintf("no capacity for %s in zone %s, %s", c.ProviderType, c.Zone, c.Market)}
}
