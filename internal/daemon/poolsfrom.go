package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/configimport"
	"drover/internal/control"
	"drover/internal/logkey"
)

// A pool may be described in an attribute of a cloud, as prevmtable's pools are. The attribute is read each time its
// cloud is listed. Its last valid text is kept in the state folder: a cloud that does not answer, or a missing
// attribute, does not end a pool.

// attributeTime is how long reading an attribute may take. Signals and edits wait meanwhile.
const attributeTime = 10 * time.Second

// load reads the configuration, with the pool that an attribute describes if there is one. When a controller starts,
// the last valid description replaces an invalid one.
func (d *daemon) load(ctx context.Context) (*config.Config, error) {
	c, err := d.Load()
	if err != nil || c.PoolsFrom.Cloud == "" {
		return c, err
	}
	text, err := d.read(ctx, c)
	if err == nil {
		d.described = text
		var with *config.Config
		if with, err = d.withDescribed(c, text); err == nil {
			return with, KeepFile(d.keptPool(), []byte(text))
		}
		if d.fleet != nil {
			return nil, err
		}
	}
	kept, none := os.ReadFile(d.keptPool())
	if errors.Is(none, fs.ErrNotExist) {
		return nil, c.Fault("pools_from", err.Error(), drover.AsError(err, drover.KindInternal).Hint)
	}
	d.Log.Warn("a pool's description cannot be used, so the last valid one stays in use", logkey.Error, err)
	if none != nil {
		return nil, none
	}
	return d.withDescribed(c, string(kept))
}

func (d *daemon) keptPool() string { return d.folder.File("pools_from") }

// attributeName returns the name of the attribute that describes a pool.
func attributeName(c *config.Config) string {
	return cmp.Or(os.Getenv("PREVMTABLE_ATTRIBUTE"), c.PoolsFrom.Attribute, "prevmtable")
}

// read returns the content of the attribute.
func (d *daemon) read(ctx context.Context, c *config.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, attributeTime)
	defer cancel()
	text, err := d.attribute(ctx, c)
	if err != nil {
		return "", fmt.Errorf("attribute %s of cloud %s: %w", attributeName(c), c.PoolsFrom.Cloud, err)
	}
	return text, nil
}

// attribute queries the cloud, and opens it first if necessary.
func (d *daemon) attribute(ctx context.Context, c *config.Config) (string, error) {
	cl, done, err := d.openFor(ctx, c)
	if err != nil {
		return "", err
	}
	defer done()
	from, can := driver.As[driver.Attributes](cl.Driver)
	if !can {
		return "", drover.Errorf(drover.KindUnsupported, "its driver does not support attributes").WithHint("only driver: gce supports them")
	}
	return from.Attribute(ctx, attributeName(c))
}

// openFor returns the cloud that describes a pool.
func (d *daemon) openFor(ctx context.Context, c *config.Config) (_ control.Cloud, done func(), err error) {
	if d.fleet != nil {
		if at := slices.IndexFunc(d.fleet.clouds, func(cl control.Cloud) bool { return cl.Name == c.PoolsFrom.Cloud }); at >= 0 {
			return d.fleet.clouds[at], func() {}, nil
		}
	}
	cl, err := OpenCloud(ctx, *c.Cloud(c.PoolsFrom.Cloud), Opening{Drivers: d.Program.Drivers, Fleet: c.Fleet, Folder: d.folder.File("."), Log: d.Log})
	return cl, func() { cl.Driver.Close() }, err
}

// withDescribed returns a configuration with the pool that a text describes.
func (d *daemon) withDescribed(c *config.Config, text string) (*config.Config, error) {
	old, err := configimport.ReadPrevmtable(text)
	if err != nil {
		return nil, c.Fault("pools_from", fmt.Sprintf("attribute %s: %v", attributeName(c), err), drover.AsError(err, drover.KindInvalid).Hint)
	}
	for _, note := range old.Notes {
		d.Log.Warn("part of the attribute cannot be converted", logkey.Note, drover.Sanitize(note))
	}
	if old.DiskType != "" {
		d.Log.Warn("part of the attribute cannot be converted", logkey.Note, "the cloud's configuration sets the boot disk type: write disk_type: "+drover.Sanitize(old.DiskType)+" there")
	}
	with, err := c.WithPool(describedPool(c, old), old.Listing)
	if err != nil {
		return nil, err
	}
	return with, d.Program.Check(with)
}

func describedPool(c *config.Config, old configimport.Prevmtable) (p config.Pool) {
	p.Default()
	p.Name, p.Size, p.Zones, p.Type, p.Market = configimport.PoolName(attributeName(c)), &old.Count, old.Zones, old.Type, old.Market
	p.NamePrefix, p.Login, p.Disk, p.Cooldown = old.Prefix, drover.LoginNone, old.Disk, cmp.Or(old.Cooldown, p.Cooldown)
	p.CloudInit.Text, p.Template.Text = old.Startup, old.Template
	if old.Image != "" {
		p.Image = config.Images{"": old.Image}
	}
	at := func(hook drover.Hook) config.HookTarget {
		if name := old.Hooks[hook]; name != "" {
			return config.HookTarget("attribute:" + c.PoolsFrom.Cloud + "/" + name)
		}
		return ""
	}
	p.Hooks = config.Hooks{Created: at(drover.HookCreated), Destroyed: at(drover.HookDestroyed), Vanished: at(drover.HookVanished), Exhausted: at(drover.HookExhausted)}
	return p
}

// followDescribed reads the attribute once its cloud is due to be listed, and reloads the configuration if it has
// changed.
func (d *daemon) followDescribed(ctx context.Context) {
	c := d.config
	if c.PoolsFrom.Cloud == "" || time.Now().Before(d.describe) {
		return
	}
	d.describe = time.Now().Add(c.Cloud(c.PoolsFrom.Cloud).ListInterval)
	text, err := d.read(ctx, c)
	switch {
	case err == nil && text != d.described:
		d.reload(ctx)
	case err != nil && !d.untold:
		d.Log.Warn("a pool's description cannot be read, so the last valid one stays in use", logkey.Error, err)
	}
	d.untold = err != nil
}
