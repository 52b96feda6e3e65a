package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"drover"
)

// Backup copies records to a new file, which only its owner can read, while a controller may use them. KindInvalid:
// the file exists.
func Backup(ctx context.Context, records, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return drover.Errorf(drover.KindInvalid, "%s already exists", to).WithHint("name a new file, or remove this one first")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "%v", err)
	}
	db, err := connect(records, 1, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)"}})
	if err == nil {
		_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backing up %s to %s: %w", records, to, err), os.Remove(to))
	}
	return nil
}
