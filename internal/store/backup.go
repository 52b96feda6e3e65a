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
		return errors.Join(notBackedUp(records, to, err), os.Remove(to))
	}
	return nil
}

// notBackedUp returns why a backup failed. Only the copy grows, but SQLite may need a new file next to the records too.
func notBackedUp(records, to string, err error) error {
	what := fmt.Sprintf("backing up %s to %s", records, to)
	for _, file := range []string{to, records} {
		if isFull(err, file) {
			return drover.Errorf(drover.KindTransient, "%s: the disk that holds %s is full", what, file).
				WithHint("free up space there, or write the backup to another disk")
		}
	}
	return explained(what, err)
}
