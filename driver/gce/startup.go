package gce

import (
	"encoding/base64"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// initFolder is where an instance notes which scripts have run.
const initFolder = "/var/lib/drover-init"

// metadata is what an instance reads at its boot: who may log in, and what runs. Nobody else logs in by it: neither the project's keys nor its
// members.
func (c *cloud) metadata(r driver.CreateRequest) ([]*compute.MetadataItems, error) {
	all := []*compute.MetadataItems{
		item("block-project-ssh-keys", "TRUE"), item("enable-oslogin", "FALSE"), item("enable-guest-attributes", "TRUE"),
	}
	if r.PublicKey != "" {
		all = append(all, item("ssh-keys", c.config.User+":"+strings.TrimSpace(r.PublicKey)))
	}
	if c.config.Init == initCloud {
		all = append(all, item("user-data", kit.UserData(r).Reveal()))
	} else if scripts := kit.Scripts(r); len(scripts) > 0 {
		all = append(all, item("startup-script", startup(initFolder, scripts)))
	}
	for _, i := range all {
		if len(*i.Value) > maxMetadata {
			return nil, drover.Errorf(drover.KindInvalid, "%s has %d bytes, and Google takes %d", i.Key, len(*i.Value), maxMetadata)
		}
	}
	return all, nil
}

func item(key, value string) *compute.MetadataItems {
	return &compute.MetadataItems{Key: key, Value: &value}
}

// startup is a startup script, which Google runs at every boot, that runs each of these at the first alone. They come in base 64, since they
// may be of any language and hold anything.
func startup(folder string, scripts []drover.Secret) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
dir=%s
mkdir -p "$dir" && chmod 700 "$dir" || exit 1
once() {
	[ -e "$dir/$1.done" ] && return
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	: >"$dir/$1.done"
	rm -f "$dir/$1"
}
`, folder)
	for i, s := range scripts {
		fmt.Fprintf(&b, "once %d <<'END'\n%s\nEND\n", i, base64.StdEncoding.EncodeToString([]byte(s.Reveal())))
	}
	return b.String()
}
