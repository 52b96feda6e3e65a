package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"drover"
	"drover/internal/config"
	"drover/internal/store"
)

// keptCloud is the configuration with which a cloud was last opened. It is kept so that a controller started after
// the cloud was removed from the configuration can still reach and drain its instances.
type keptCloud struct {
	Folder string `json:"folder"` // to which paths in Text are relative
	Text   string `json:"text"`
}

// keepClouds records the configuration of each cloud in a controller's folder.
func keepClouds(folder string, c *config.Config) error {
	text, dir := c.Source()
	data, err := json.Marshal(keptCloud{dir, string(text)})
	err = errors.Join(err, os.MkdirAll(filepath.Join(folder, ".clouds"), 0o700))
	for _, cloud := range c.Clouds {
		if err == nil {
			err = KeepFile(cloudFile(folder, cloud.Name), data)
		}
	}
	if err != nil {
		return fmt.Errorf("storing the configuration of the clouds: %w", err)
	}
	return nil
}

func cloudFile(folder, name string) string { return filepath.Join(folder, ".clouds", name+".json") }

// cloudLeft returns the configuration with which a cloud was last opened.
func cloudLeft(folder, name string) (cloud config.Cloud, err error) {
	data, err := os.ReadFile(cloudFile(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return cloud, cloudGone(name)
	}
	var kept keptCloud
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		return cloud, fmt.Errorf("reading the earlier configuration of cloud %s: %w", name, err)
	}
	c, err := config.ParseRemoved("the earlier configuration of cloud "+name, []byte(kept.Text), kept.Folder, name)
	switch {
	case err != nil:
		return cloud, err
	case c == nil:
		return cloud, cloudGone(name)
	}
	return *c, nil
}

// cloudsLeft returns the removed clouds in which the records have instances.
func (f Folder) cloudsLeft(ctx context.Context, records *store.Store, c *config.Config) (left []config.Cloud, err error) {
	missing, err := missingClouds(ctx, records, c)
	for _, name := range missing {
		cloud, err := cloudLeft(f.Path(), name)
		if err != nil {
			return nil, err
		}
		left = append(left, cloud)
	}
	return left, err
}

// NoneLeft refuses a configuration that lacks a cloud with instances: nobody would ever destroy them.
func NoneLeft(ctx context.Context, records *store.Store, c *config.Config) ([]config.Cloud, error) {
	missing, err := missingClouds(ctx, records, c)
	if err == nil && len(missing) > 0 {
		err = cloudGone(missing[0])
	}
	return nil, err
}

func cloudGone(name string) error {
	return drover.Errorf(drover.KindInvalid, "cloud %s still has instances, but the configuration no longer contains it", name).
		WithHint("add the cloud back, and keep it until its instances are gone")
}

// cannotDrain returns why a controller does not start: nobody would ever destroy the instances in a removed cloud that
// cannot be opened.
func cannotDrain(name string, err error) error {
	e := drover.AsError(err, drover.KindInvalid)
	return drover.Errorf(e.Kind, "cloud %s still has instances, but the configuration no longer contains it, and it cannot be opened as before: %s", name, onOneLine(err)).
		WithHint("restore what is missing, or add the cloud back and keep it until its instances are gone")
}

// missingClouds returns the names of the clouds in which the records have instances and that the configuration lacks.
func missingClouds(ctx context.Context, records *store.Store, c *config.Config) (names []string, err error) {
	list, err := records.Instances(ctx, 0, drover.InstanceFilter{Limit: -1})
	for _, in := range list {
		if !slices.Contains(c.CloudNames(), in.Cloud) && !slices.Contains(names, in.Cloud) {
			names = append(names, in.Cloud)
		}
	}
	return names, err
}
