package gce

import (
	"testing"

	"drover/driver"
	"drover/driver/drivertest"
)

// covers L18
func TestNothingIsTriedAgain(t *testing.T) {
	drivertest.Once(t, newFake(), requestFor("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}
