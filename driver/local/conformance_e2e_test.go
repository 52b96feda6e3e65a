//go:build e2e

package local_test

import (
	"context"
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/local"
)

// covers C1 C2 C3 C4 C11
func TestConformance(t *testing.T) {
	w := newWorld(t, "")
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, fleet string) (driver.Cloud, error) {
			return local.Open(ctx, w.options(fleet))
		},
		Fleet:    "suite",
		Patience: 20 * time.Second,
	})
}
