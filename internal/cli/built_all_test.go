//go:build e2e || chaos || qemu

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// buildProgram builds drover as it is released: with all drivers, and with static runners for both architectures.
func buildProgram(folder string) error {
	laid := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		packed, err := buildRunner(folder, arch, "CGO_ENABLED=0", "GOARCH="+arch)
		if err != nil {
			return err
		}
		laid["runners/linux-"+arch+".gz"] = packed
	}
	overlay, err := overlay(folder, laid)
	if err != nil {
		return err
	}
	return goBuild(nil, filepath.Join(folder, "drover"), "-tags", "runners", "-overlay", overlay, "../../cmd/drover")
}

// overlay makes go build find additional files in cmd/drover.
func overlay(folder string, laid map[string]string) (name string, err error) {
	replaced := map[string]string{}
	for place, file := range laid {
		abs, err := filepath.Abs(filepath.Join("../../cmd/drover", place))
		if err != nil {
			return "", err
		}
		replaced[abs] = file
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	name = filepath.Join(folder, "overlay.json")
	return name, errors.Join(err, os.WriteFile(name, text, 0o600))
}

// buildRunner builds a runner, and packs it as releases do.
func buildRunner(folder, arch string, environment ...string) (packed string, err error) {
	name := filepath.Join(folder, "runner-"+arch)
	if err := goBuild(environment, name, "../../cmd/drover-runner"); err != nil {
		return "", err
	}
	return compress(name)
}
