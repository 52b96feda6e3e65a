package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"drover"
	"drover/internal/config"
	"drover/internal/store"
)

// keptCloud is the configuration by which a cloud was last opened. It is kept so that a controller which is started when the cloud has been taken
// out can still reach the instances there, and drain them.
type keptCloud struct {
	Folder string `json:"folder"` // from which relative paths in Text are seen
	Text   string `json:"text"`
}

// keepClouds writes down the configuration of each of its clouds.
func (f daemonFolder) keepClouds(c *config.Config) error {
	text, folder := c.Source()
	data, err := json.Marshal(keptCloud{folder, string(text)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.file(".clouds"), 0o700); err != nil {
		return err
	}
	for _, cloud := range c.Clouds {
		path := f.keptCloud(cloud.Name)
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

func (f daemonFolder) keptCloud(name string) string {
	return filepath.Join(f.file(".clouds"), name+".json")
}

// cloudLeft is a cloud that the configuration no longer has, as it was last opened.
func (f daemonFolder) cloudLeft(name string) (cloud config.Cloud, err error) {
	unknown := drover.Errorf(drover.KindInvalid, "there are instances in cloud %s, which the configuration no longer has", name).
		WithHint("put the cloud back until its instances are gone")
	data, err := os.ReadFile(f.keptCloud(name))
	if errors.Is(err, fs.ErrNotExist) {
		return cloud, unknown
	}
	var kept keptCloud
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	var c *config.Config
	if err == nil {
		c, err = config.Parse(name+" as it was", []byte(kept.Text), kept.Folder)
	}
	if err != nil {
		return cloud, err
	}
	at := slices.IndexFunc(c.Clouds, func(c config.Cloud) bool { return c.Name == name })
	if at < 0 {
		return cloud, unknown
	}
	return c.Clouds[at], nil
}

// cloudsLeft are the clouds in which the records have instances and that the configuration no longer has.
func (f daemonFolder) cloudsLeft(ctx context.Context, records *store.Store, c *config.Config) (left []config.Cloud, err error) {
	names, err := cloudsInUse(ctx, records)
	for _, name := range names {
		if slices.Contains(c.CloudNames(), name) {
			continue
		}
		cloud, err := f.cloudLeft(name)
		if err != nil {
			return nil, err
		}
		left = append(left, cloud)
	}
	return left, err
}

// cloudsInUse names the clouds in which the records have instances.
func cloudsInUse(ctx context.Context, records *store.Store) (names []string, err error) {
	for after := int64(0); ; {
		list, err := records.Instances(ctx, 0, drover.InstanceFilter{After: after, Limit: drover.MaxPage})
		if err != nil {
			return nil, err
		}
		for _, in := range list {
			after = in.ID
			if !slices.Contains(names, in.Cloud) {
				names = append(names, in.Cloud)
			}
		}
		if len(list) < drover.MaxPage {
			return names, nil
		}
	}
}
