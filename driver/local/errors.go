package local

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// classify gives an error of this host's a kind: what is missing is not found, what is full or forbidden is said to be so, and
// anything else tells nothing.
func classify(doing string, err error) error {
	if told, done := kit.Classed(doing, err); done {
		return told
	}
	kind, scope := drover.KindTransient, drover.Scope("")
	for _, c := range classes {
		if errors.Is(err, c.err) {
			kind, scope = c.kind, c.scope
			break
		}
	}
	return &drover.Error{Kind: kind, Scope: scope, Message: fmt.Sprintf("%s: %v", doing, err)}
}

var classes = []struct {
	err   error
	kind  drover.ErrorKind
	scope drover.Scope
}{
	{fs.ErrNotExist, drover.KindNotFound, ""},
	{fs.ErrPermission, drover.KindAuthentication, ""},
	{syscall.EDQUOT, drover.KindQuota, drover.ScopeAll},
	{syscall.ENOSPC, drover.KindCapacity, drover.ScopeAll},
	{syscall.EAGAIN, drover.KindCapacity, drover.ScopeAll}, // fork: no more processes
	{syscall.ENOMEM, drover.KindCapacity, drover.ScopeAll},
	{syscall.EMFILE, drover.KindCapacity, drover.ScopeAll},
	{syscall.ENFILE, drover.KindCapacity, drover.ScopeAll},
}

func notFound(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
	}
	return classify("read instance "+id, err)
}

func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

func errQuota(limit int) error {
	return &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll,
		Message: fmt.Sprintf("the fleet may have no more than %d instances", limit)}
}

func errCapacity(c driver.Candidate) error {
	return &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: c.Market,
		Message: fmt.Sprintf("out of %s in zone %s, %s", c.ProviderType, c.Zone, c.Market)}
}
