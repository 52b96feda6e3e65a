package local

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"drover"
	"drover/driver"
	"drover/internal/atomicfile"
	"drover/internal/folderlock"
	"drover/internal/logkey"
)

// List finds every instance of every fleet in the folder, and cleans away the dead.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	c.reap()
	fleets, err := instanceFolders(c.o.Folder)
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	var found []driver.Instance
	for _, fleet := range fleets {
		instances, err := c.listFleet(ctx, fleet)
		if err != nil {
			return nil, errs.Classify("list instances", err)
		}
		found = append(found, instances...)
	}
	return slices.DeleteFunc(found, func(in driver.Instance) bool { return !in.Bears(tags) }), nil
}

// Describe looks into one instance's folder, as List does into all.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	path, err := c.path(id)
	if err != nil {
		return driver.Instance{}, err
	}
	in, err := c.look(ctx, filepath.Base(filepath.Dir(path)), path)
	if err != nil {
		return driver.Instance{}, notFound(id, err)
	}
	return in, nil
}

func (c *cloud) listFleet(ctx context.Context, fleet string) ([]driver.Instance, error) {
	paths, err := instanceFolders(fleet)
	if err != nil {
		return nil, err
	}
	var found []driver.Instance
	for _, path := range paths {
		in, err := c.look(ctx, filepath.Base(fleet), path)
		if errors.Is(err, os.ErrNotExist) {
			continue // it went, or is not yet an instance
		}
		if err != nil {
			return nil, err
		}
		found = append(found, in)
	}
	return found, nil
}

// look reads the instance in a folder, or cleans it away if it is dead, which is os.ErrNotExist.
func (c *cloud) look(ctx context.Context, fleet, path string) (driver.Instance, error) {
	if err := ctx.Err(); err != nil {
		return driver.Instance{}, err
	}
	if in, alive, err := living(fleet, path); alive || err != nil {
		return in, err
	}
	held, err := c.lockToClean(ctx, fleet)
	if err != nil {
		return driver.Instance{}, err
	}
	defer folderlock.Unlock(held)
	if in, alive, err := living(fleet, path); alive || err != nil { // it was being created
		return in, err
	}
	if remains(path) {
		return c.lookAtRemains(ctx, fleet, path)
	}
	c.o.Log.Info("a local instance has died unexpectedly", logkey.ProviderID, idOf(fleet, filepath.Base(path)))
	if err := c.remove(ctx, path); err != nil {
		return driver.Instance{}, err
	}
	return driver.Instance{}, os.ErrNotExist
}

// living reads the instance in a folder if it lives.
func living(fleet, path string) (in driver.Instance, alive bool, err error) {
	if alive, err = folderlock.Held(path); alive {
		in, err = readInstance(fleet, path)
	}
	return in, alive, err
}

// lockToClean waits for our own fleet's lock. Another's is left alone if it is held, with os.ErrNotExist: a controller
// that was stopped at the wrong moment must not stop those of other fleets.
func (c *cloud) lockToClean(ctx context.Context, fleet string) (*os.File, error) {
	if fleet == c.o.Fleet {
		return folderlock.Lock(ctx, c.fleetFolder(fleet))
	}
	held, err := folderlock.Try(c.fleetFolder(fleet))
	if held == nil && err == nil {
		err = os.ErrNotExist
	}
	return held, err
}

// instanceFolders lists the folders in one, without the hidden: those of fleets, or of one fleet's instances.
func instanceFolders(in string) ([]string, error) {
	entries, err := os.ReadDir(in)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && validName(e.Name()) {
			folders = append(folders, filepath.Join(in, e.Name()))
		}
	}
	return folders, nil
}

// SetTags puts a whole file of tags in the place of the old one.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	path, err := c.path(id)
	if err != nil {
		return err
	}
	held, err := folderlock.Lock(ctx, filepath.Dir(path))
	if err != nil {
		return notFound(id, err)
	}
	defer folderlock.Unlock(held)
	if alive, err := folderlock.Held(path); err != nil || !alive && !remains(path) {
		return notFound(id, errors.Join(err, os.ErrNotExist))
	}
	return errs.Classify("tag instance "+id, atomicfile.WriteJSON(filepath.Join(path, tagsFile), tags))
}

// VerifyHostKey compares with the key that was planted.
func (c *cloud) VerifyHostKey(ctx context.Context, in driver.Instance, key, _ []byte) error {
	path, err := c.path(in.ID)
	if err != nil {
		return err
	}
	r, err := readRecord(path)
	if err != nil {
		return notFound(in.ID, err)
	}
	if planted, err := base64.StdEncoding.DecodeString(r.HostKey); err != nil || !bytes.Equal(planted, key) {
		return drover.Errorf(drover.KindHostKey, "instance %s does not have the host key that Drover installed", in.ID)
	}
	return ctx.Err()
}

// mostAttribute is how large an attribute may be, as with the clouds that have them.
const mostAttribute = 256 << 10

// Attribute is a file of the configured folder.
func (c *cloud) Attribute(_ context.Context, name string) (string, error) {
	if c.config.Attributes == "" || name != filepath.Base(name) {
		return "", drover.Errorf(drover.KindNotFound, "there is no attribute %.80q", name)
	}
	file, err := os.Open(filepath.Join(c.config.Attributes, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", drover.Errorf(drover.KindNotFound, "there is no attribute %.80q", name)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostAttribute))
	return string(text), err
}
