package ec2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
)

func TestPage(t *testing.T) {
	t.Run("its rates are those that are kept", func(t *testing.T) {
		if diff := cmp.Diff(rates, drivertest.ReadPage(t, "ec2").Rates(t, 1)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestClasses(t *testing.T) {
	page := drivertest.ReadPage(t, "ec2")
	t.Run("the page shows the table", func(t *testing.T) {
		var want [][]string
		for _, c := range classes {
			want = append(want, []string{c.code, string(c.kind), string(c.scope)})
		}
		page.Shows(t, "Errors", want)
		page.Sourced(t, "Errors")
	})
	t.Run("every code of the page has its class", func(t *testing.T) {
		for _, row := range page.Rows(t, "Errors") {
			code := strings.ReplaceAll(row[0], "*", "SomethingOrOther")
			err := classify("try it", fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: code, Message: "said so"}))
			e := drover.AsError(err, drover.KindInternal)
			if string(e.Kind) != row[1] || string(e.Scope) != row[2] || e.Message != "try it: "+code+": said so" {
				t.Errorf("%s: got %+v", code, e)
			}
		}
	})
	t.Run("no row is hidden by one before it", func(t *testing.T) {
		for _, c := range classes {
			if classOf(strings.TrimSuffix(c.code, "*")) != c && !strings.HasSuffix(c.code, "*") {
				t.Errorf("%s is taken for %v", c.code, classOf(c.code))
			}
		}
	})
}

// answer is an error of the cloud's.
func answer(code string) error { return &smithy.GenericAPIError{Code: code} }

func TestClassify(t *testing.T) {
	drivertest.Classifies(t, classify)
	t.Run("types and quotas are of a market, zones and accounts are not", func(t *testing.T) {
		for code, want := range map[string]drover.Market{
			"InsufficientInstanceCapacity": drover.Spot, "MaxSpotInstanceCountExceeded": drover.Spot,
			"InsufficientFreeAddressesInSubnet": "", "VolumeLimitExceeded": "",
		} {
			if got := ofMarket(drover.Spot, classify("", answer(code))); got.Market != want {
				t.Errorf("%s: %+v", code, got)
			}
		}
	})
	t.Run("a rate limit says when", func(t *testing.T) {
		before := time.Now()
		e := drover.AsError(classify("", answer("RequestLimitExceeded")), "")
		if e.RetryAt < drover.TimeOf(before) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an answer that tells nothing is transient", func(t *testing.T) {
		if got := drover.KindOf(classify("", answer("Weird"))); got != drover.KindTransient {
			t.Error(got)
		}
	})
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "EC2", listLag) }
