package benchfleet

import (
	"context"
	"testing"
	"time"

	"drover/driver"
	"drover/driver/drivertest"
)

func TestCloud(t *testing.T) {
	c := newCloud(100, 0, newTally(0))
	defer c.end()
	drivertest.Run(t, drivertest.Harness{
		Open:       func(context.Context, string) (driver.Cloud, error) { return c, nil },
		Fleet:      fleetName,
		Patience:   10 * time.Second,
		NoCommands: true,
	})
}
