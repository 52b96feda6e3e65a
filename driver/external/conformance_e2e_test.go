//go:build e2e

package external_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/external"
	"drover/driver/middleware"
)

// covers C9
func TestConformance(t *testing.T) {
	for _, protocol := range []external.Protocol{external.ByCall, external.ByStream} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			keys := fmt.Sprintf("command: [%s, driver-program], protocol: %s, options: {folder: %s}", os.Args[0], protocol, filepath.Join(folder, "instances"))
			drivertest.Run(t, drivertest.Harness{
				Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
					c, err := open(ctx, keys, fleet, folder, nil)
					if err != nil {
						return nil, err
					}
					return middleware.ForFleet(c, fleet), nil
				},
				Fleet:    "suite-" + string(protocol),
				Patience: time.Minute,
			})
		})
	}
}
