package cli

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
	"drover/internal/config"
	"drover/internal/store"
)

// daemonFolder is where a daemon keeps what it must: its records in one SQLite file, and beside it, in a folder that only its user can
// enter, everything else.
type daemonFolder struct {
	fleet   string
	records string // free of links
}

// newDaemonFolder says where the daemon of a configuration keeps things. Nothing is made.
func newDaemonFolder(c *config.Config) (daemonFolder, error) {
	if c.Fleet == "" {
		return daemonFolder{}, c.Fault("fleet", "a fleet has to be named", "write fleet: NAME; every instance bears it, and no other controller touches those")
	}
	records := c.State
	if records == "" {
		home, err := stateHome()
		if err != nil {
			return daemonFolder{}, err
		}
		records = filepath.Join(home, c.Fleet, "drover.db")
	}
	// Whichever link leads to the records, what belongs to them is beside them.
	records, err := store.Resolve(records)
	return daemonFolder{c.Fleet, records}, err
}

// daemon is the configuration in force, and where its daemon keeps things.
func (a *app) daemon() (*config.Config, daemonFolder, error) {
	c, err := a.loadConfig(a.config, "")
	if err != nil {
		return nil, daemonFolder{}, err
	}
	folder, err := newDaemonFolder(c)
	return c, folder, err
}

// db is the SQLite file of the records.
func (f daemonFolder) db() string { return f.records }

// path is the folder beside the records: drover.d beside drover.db.
func (f daemonFolder) path() string { return strings.TrimSuffix(f.records, ".db") + ".d" }

// file is the path of a file or folder in it: fleet.key, token, inputs, results, recording, or what a cloud's driver keeps.
func (f daemonFolder) file(name string) string { return filepath.Join(f.path(), name) }

// make makes the folder where there is none, and refuses one that others can enter.
func (f daemonFolder) make() error {
	if err := os.MkdirAll(f.path(), 0o700); err != nil {
		return fmt.Errorf("making the daemon's folder: %w", err)
	}
	info, err := os.Stat(f.path())
	if err != nil {
		return fmt.Errorf("making the daemon's folder: %w", err)
	}
	return refuseOpen(f.path(), info)
}

// tokenFile is where the local admin token is, which whoever can read it may use on this host.
func (f daemonFolder) tokenFile() string { return f.file("token") }

// token reads the local admin token.
func (f daemonFolder) token() (drover.Secret, error) { return readToken(f.tokenFile()) }

// makeToken reads the local admin token, made if there is none. The folder must be there, and locked by the caller.
func (f daemonFolder) makeToken() (drover.Secret, error) {
	token, err := f.token()
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	fresh := f.file("token.new")
	// What a controller left that died over it would keep its own permissions.
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return drover.Secret{}, fmt.Errorf("making the local token: %w", err)
	}
	text := "drover_local_" + base64.RawURLEncoding.EncodeToString(secret) + "\n"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		return drover.Secret{}, fmt.Errorf("making the local token: %w", err)
	}
	if err := os.Rename(fresh, f.tokenFile()); err != nil {
		return drover.Secret{}, fmt.Errorf("making the local token: %w", err)
	}
	return f.token()
}

// announce writes down where the daemon answers, for a configuration that leaves the choice of a port to the host.
func (f daemonFolder) announce(address string) error {
	if err := keepFile(f.file("address"), []byte(address+"\n")); err != nil {
		return fmt.Errorf("announcing the address: %w", err)
	}
	return nil
}

// announced is where the daemon said last that it answers.
func (f daemonFolder) announced() (string, error) {
	address, err := os.ReadFile(f.file("address"))
	return strings.TrimSpace(string(address)), err
}

// maxToken is more than any token is long.
const maxToken = 4096

// readToken reads a token from a file that nobody else may read.
func readToken(path string) (drover.Secret, error) {
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
		return drover.Secret{}, drover.Errorf(drover.KindInvalid, "%s holds no token", path)
	}
	return drover.NewSecret(token), nil
}

// refuseOpen refuses what others than its owner may read or write.
func refuseOpen(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode.Perm()&0o077 == 0 {
		return nil
	}
	return drover.Errorf(drover.KindForbidden, "%s is open to others (%v)", path, mode).
		WithHint("chmod go= %s, if nobody else can have read it", path)
}
