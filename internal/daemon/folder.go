package daemon

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"drover"
	"drover/internal/atomicfile"
	"drover/internal/config"
	"drover/internal/store"
)

// Folder is where a daemon keeps its files: its records in one SQLite file, and beside it, in a folder that only its
// user can enter, everything else.
type Folder struct {
	Fleet   string
	records string // free of links
}

// NewFolder returns the folder of a configuration's daemon. It creates nothing.
func NewFolder(c *config.Config) (Folder, error) {
	if c.Fleet == "" {
		return Folder{}, c.Fault("fleet", "the fleet needs a name", "write fleet: NAME; every instance is tagged with it, and no other controller touches those instances")
	}
	records := c.State
	if records == "" {
		home, err := StateHome()
		if err != nil {
			return Folder{}, err
		}
		records = filepath.Join(home, c.Fleet, "drover.db")
	}
	// The folder is beside the records themselves, not beside a link to them.
	records, err := store.Resolve(records)
	if err != nil {
		return Folder{}, fmt.Errorf("finding the records: %w", err)
	}
	return Folder{c.Fleet, records}, nil
}

// DB returns the SQLite file of the records.
func (f Folder) DB() string { return f.records }

// Path returns the folder beside the records: drover.d beside drover.db.
func (f Folder) Path() string { return strings.TrimSuffix(f.records, ".db") + ".d" }

// File returns the path of a file or folder in it: fleet.key, token, inputs, results, recording, or a driver's files.
func (f Folder) File(name string) string { return filepath.Join(f.Path(), name) }

// Make creates the folder if it is missing, and refuses one that others can enter.
func (f Folder) Make() error {
	if err := os.MkdirAll(f.Path(), 0o700); err != nil {
		return fmt.Errorf("creating the controller's folder: %w", err)
	}
	info, err := os.Stat(f.Path())
	if err != nil {
		return fmt.Errorf("creating the controller's folder: %w", err)
	}
	return refuseOpen(f.Path(), info)
}

// tokenFile returns the path of the local admin token, which anyone who can read it may use on this host.
func (f Folder) tokenFile() string { return f.File("token") }

// Token reads the local admin token.
func (f Folder) Token() (drover.Secret, error) { return ReadToken(f.tokenFile()) }

// MakeToken reads the local admin token, or creates one. The folder must exist, locked by the caller.
func (f Folder) MakeToken() (drover.Secret, error) {
	token, err := f.Token()
	switch {
	case drover.KindOf(err) == drover.KindInvalid:
		return token, drover.AsError(err, drover.KindInvalid).WithHint("remove the file, and the controller makes a new token")
	case !errors.Is(err, fs.ErrNotExist):
		return token, err
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	text := "drover_local_" + base64.RawURLEncoding.EncodeToString(secret) + "\n"
	if err := atomicfile.WriteDurably(f.tokenFile(), []byte(text)); err != nil {
		return drover.Secret{}, fmt.Errorf("creating the local token: %w", err)
	}
	return f.Token()
}

// Announce records where the daemon listens, for a configuration that lets the host choose a port.
func (f Folder) Announce(address string) error {
	if err := KeepFile(f.File("address"), []byte(address+"\n")); err != nil {
		return fmt.Errorf("recording the controller's address: %w", err)
	}
	return nil
}

// Announced returns the address that Announce last recorded.
func (f Folder) Announced() (string, error) {
	address, err := os.ReadFile(f.File("address"))
	return strings.TrimSpace(string(address)), err
}

// maxToken is longer than any token.
const maxToken = 4096

// ReadToken reads a token from a file that nobody else may read.
func ReadToken(path string) (drover.Secret, error) {
	file, err := os.Open(path)
	if err != nil {
		return drover.Secret{}, fmt.Errorf("reading the token: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return drover.Secret{}, fmt.Errorf("reading the token: %w", err)
	}
	if err := refuseOpen(path, info); err != nil {
		return drover.Secret{}, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	if err != nil {
		return drover.Secret{}, fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return drover.Secret{}, drover.Errorf(drover.KindInvalid, "%s contains no token", path)
	}
	return drover.NewSecret(token), nil
}

// refuseOpen refuses a file that users other than its owner may read or write.
func refuseOpen(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode.Perm()&0o077 == 0 {
		return nil
	}
	return drover.Errorf(drover.KindForbidden, "%s can be read by others (%v)", path, mode).
		WithHint("run chmod go= %s; if others may already have read it, replace the secret in it", path)
}
