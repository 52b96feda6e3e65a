package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/folderlock"
)

// The files of an instance's folder.
const (
	recordFile = "record.json"
	tagsFile   = "tags.json"
	pidFile    = "pid"
	logFile    = "log"
	homeFolder = "home"
	tempFolder = "tmp"
	binFolder  = "bin"
)

// record is everything about an instance except its tags.
type record struct {
	Candidate driver.Candidate `json:"candidate"`
	Address   string           `json:"address"`
	User      string           `json:"user"`
	HostKey   string           `json:"host_key"` // the public one, in SSH wire format, base64
	Created   drover.Time      `json:"created"`
	Boots     drover.Time      `json:"boots"` // when it stops pending, after its last start
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// validName reports whether a fleet or an instance may have this name, which becomes a folder's name and half of an id.
func validName(s string) bool { return namePattern.MatchString(s) }

// idOf returns an instance's permanent id: its fleet and its name.
func idOf(fleet, name string) string { return fleet + "." + name }

// path returns the folder of the instance with this id; KindNotFound for an id that this driver never assigned.
func (c *cloud) path(id string) (string, error) {
	fleet, name, _ := strings.Cut(id, ".")
	if !validName(fleet) || !validName(name) {
		return "", drover.Errorf(drover.KindNotFound, "there is no instance %q", id)
	}
	return filepath.Join(c.fleetFolder(fleet), name), nil
}

func readRecord(path string) (r record, err error) {
	return r, readJSON(filepath.Join(path, recordFile), &r)
}

// readInstance reads everything about the instance in a folder.
func readInstance(fleet, path string) (driver.Instance, error) {
	r, err := readRecord(path)
	if err != nil {
		return driver.Instance{}, err
	}
	var tags map[string]string
	if err := readJSON(filepath.Join(path, tagsFile), &tags); err != nil {
		return driver.Instance{}, err
	}
	in := driver.Instance{
		ID:           idOf(fleet, filepath.Base(path)),
		Tags:         tags,
		ProviderType: r.Candidate.ProviderType,
		Zone:         r.Candidate.Zone,
		Market:       r.Candidate.Market,
		State:        driver.Running,
		Reclaimed:    has(path, noticesFile),
		Addresses:    driver.Addresses{Private: r.Address, Public: r.Address, User: r.User},
		Created:      r.Created,
	}
	if drover.TimeOf(time.Now()) < r.Boots {
		in.State = driver.Pending
	}
	return in, nil
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// lockFleet creates a fleet's folder if necessary and locks it.
func (c *cloud) lockFleet(ctx context.Context, fleet string) (*os.File, error) {
	path := c.fleetFolder(fleet)
	for {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		// Meanwhile a Close may remove the folder because it is empty.
		f, err := folderlock.Lock(ctx, path)
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
}
