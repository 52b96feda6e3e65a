package ec2

import (
	"testing"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"drover/driver/drivertest"
	"drover/driver/kit"
)

func TestPage(t *testing.T) {
	drivertest.ShowsLag(t, "EC2", listLag)
	t.Run("shows the driver's call rates", func(t *testing.T) {
		if diff := cmp.Diff(rates, drivertest.ReadPage(t, "ec2").Rates(t, 1)); diff != "" {
			t.Error(diff)
		}
	})
}

// covers C5 L17
func TestErrors(t *testing.T) {
	drivertest.Errors(t, "ec2", &errs, func(a kit.Answer) error { return &smithy.GenericAPIError{Code: a.Code, Message: a.Message} })
}
