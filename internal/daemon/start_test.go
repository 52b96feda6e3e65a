package daemon

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"drover"
	"drover/internal/config"
)

// A service manager does not start a controller again that exits with 2: the configuration is invalid.
func TestOnlyAnInvalidConfigurationKeepsAControllerFromStartingAgain(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d, f := &daemon{}, aFolder(t)
	_, inUse := d.listen(apiAddress, taken.Addr().String())
	_, elsewhere := d.listen(apiAddress, "192.0.2.1:0")
	_, invalid := d.listen(apiAddress, "nowhere")
	for name, test := range map[string]struct {
		err  error
		exit int
	}{
		"the address is in use":               {inUse, 3},
		"the host does not have the address":  {elsewhere, 3},
		"the address is invalid":              {invalid, 2},
		"the disk fails":                      {&fs.PathError{Op: "write", Path: f.DB(), Err: syscall.EIO}, 1},
		"another controller uses the records": {drover.Errorf(drover.KindConflict, "in use"), 2},
	} {
		if code := drover.AsError(f.orFull(test.err), drover.KindInvalid).Kind.ExitCode(); code != test.exit {
			t.Errorf("%s (%v): exit code %d, want %d", name, test.err, code, test.exit)
		}
	}
	c := config.Default("lab")
	c.State = f.File("loop") + "/drover.db"
	if err := os.Symlink("loop", f.File("loop")); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), Options{Load: func() (*config.Config, error) { return c, nil }}); drover.KindOf(err) != drover.KindInternal || !strings.Contains(err.Error(), "finding the records") {
		t.Errorf("records that cannot be found: %v", err)
	}
	if err := f.orFull(&fs.PathError{Op: "open", Path: f.DB(), Err: syscall.EACCES}); !strings.Contains(drover.AsError(err, "").Hint, "owner") {
		t.Errorf("a file of another user: %v, without a hint", err)
	}
	if _, whole := errors.AsType[config.Faults](f.orFull(config.Faults{{Message: "no such key"}})); !whole {
		t.Error("the faults of a configuration are lost")
	}
}
