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

// List finds every instance of every fleet in the folder, and removes dead ones.
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

// Describe reads one instance's folder, as List reads all of them.
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
			continue // it has been removed, or is not yet an instance
		}
		if err != nil {
			return nil, err
		}
		found = append(found, in)
	}
	return found, nil
}

// look reads the instance in a folder. If the instance is dead, look removes it and returns os.ErrNotExist.
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
	if in, alive, err := living(fleet, path); alive || err != nil { // it was being created meanwhile
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

// living reads the instance in a folder if it is alive.
func living(fleet, path string) (in driver.Instance, alive bool, err error) {
	if alive, err = folderlock.Held(path); alive {
		in, err = readInstance(fleet, path)
	}
	return in, alive, err
}

// lockToClean waits for our own fleet's lock. If another fleet's lock is held, it returns os.ErrNotExist and leaves
// that fleet alone: a controller that is suspended at the wrong moment must not block those of other fleets.
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

// instanceFolders lists the folders in a folder, except hidden ones: those of fleets, or of one fleet's instances.
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

// SetTags replaces the whole file of tags.
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

// VerifyHostKey compares the key with the planted one.
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

// mostAttribute is the maximum size of an attribute, as in the clouds that have them.
const mostAttribute = 256 << 10

// Attribute reads a file of the configured folder.
func (c *cloud) Attribute(_ context.Context, name string) (string, error) {
	if c.config.Attributes == "" || name != filepath.Base(name) {
		return "", drover.Errorf(drover.KindNotFound, "there is no attribute %.80q", name)
	}
	file, err := os.Open(filepath.Join(c.config.Attributes, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", drover.Errorf(drover.KindNotFound, "there is no attribute %.80q", name)
	}
	if err != nil {
		return "", errs.Classify("read an attribute", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostAttribute+1))
	if len(text) > mostAttribute {
		return "", drover.Errorf(drover.KindInvalid, "attribute %.80q is larger than %d KiB", name, mostAttribute>>10)
	}
	return string(text), errs.Classify("read an attribute", err)
}
