package gce

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"drover"
	"drover/driver/drivertest"
)

func TestPage(t *testing.T) {
	page := drivertest.ReadPage(t, "gce")
	t.Run("its rates are those that are kept", func(t *testing.T) {
		if diff := cmp.Diff(rates, page.Rates(t, 3)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the role that it shows has the permissions of the calls that are made, and no other", func(t *testing.T) {
		var want []string
		for id := range answers {
			needs, known := permissions[id]
			if !known {
				t.Errorf("%s: what does it need?", id)
			}
			want = append(want, needs...)
		}
		slices.Sort(want)
		shown := page.Words(t, "What the credentials must allow", regexp.MustCompile(`(?m)^- (compute\.[A-Za-z.]+)$`))
		if diff := cmp.Diff(slices.Compact(want), shown); diff != "" {
			t.Errorf("the calls (-) and the page's role (+): %s", diff)
		}
	})
}

// permissions are what the reference of each call says that it needs, with what an insert makes beside the instance and uses for it; none for the
// price list, which anybody may read who has the API enabled.
var permissions = map[string][]string{
	"compute.instances.insert": {
		"compute.instances.create", "compute.instances.setLabels", "compute.instances.setMetadata", "compute.instances.setServiceAccount", "compute.instances.setTags",
		"compute.disks.create", "compute.disks.setLabels", "compute.images.useReadOnly", "compute.subnetworks.use", "compute.subnetworks.useExternalIp",
	},
	"compute.instances.get": {"compute.instances.get"}, "compute.instances.aggregatedList": {"compute.instances.list"}, "compute.instances.delete": {"compute.instances.delete"},
	"compute.instances.start": {"compute.instances.start"}, "compute.instances.stop": {"compute.instances.stop"}, "compute.instances.setLabels": {"compute.instances.setLabels"},
	"compute.instances.getGuestAttributes": {"compute.instances.getGuestAttributes"},
	"compute.zoneOperations.wait":          {"compute.zoneOperations.get"}, "compute.zoneOperations.list": {"compute.zoneOperations.list"},
	"compute.disks.aggregatedList": {"compute.disks.list"}, "compute.disks.delete": {"compute.disks.delete"}, "compute.disks.resize": {"compute.disks.resize"},
	"compute.images.list": {"compute.images.list"}, "compute.zones.list": {"compute.zones.list"}, "compute.machineTypes.list": {"compute.machineTypes.list"},
	"cloudbilling.services.skus.list": nil,
}

func TestClasses(t *testing.T) {
	page := drivertest.ReadPage(t, "gce")
	t.Run("the page shows the table", func(t *testing.T) {
		var want [][]string
		for _, c := range classes {
			want = append(want, []string{c.code, string(c.kind), string(c.scope)})
		}
		page.Shows(t, "Errors", want)
		page.Sourced(t, "Errors")
	})
	t.Run("every code of the page has its class, of a call and of an operation", func(t *testing.T) {
		for _, row := range page.Rows(t, "Errors") {
			code := strings.ReplaceAll(row[0], "*", "X")
			for name, err := range map[string]error{"call": ofCall(code), "operation": ofOperation(code)} {
				if err == nil {
					continue // the other alone can say so
				}
				e := drover.AsError(classify("try it", drover.Spot, err), drover.KindInternal)
				if string(e.Kind) != row[1] || string(e.Scope) != row[2] || !strings.HasPrefix(e.Message, "try it: "+code+": ") {
					t.Errorf("%s of a %s: got %+v", code, name, e)
				}
			}
		}
	})
	t.Run("no row is hidden by one before it", func(t *testing.T) {
		for _, c := range classes {
			if got, _ := classOf(strings.ReplaceAll(c.code, "*", "X")); got != c {
				t.Errorf("%s is taken for %v", c.code, got)
			}
		}
	})
}

// ofCall is an answer that says the code: as its reason, or as its status.
func ofCall(code string) error {
	e := &googleapi.Error{Code: 418, Message: "said so", Errors: []googleapi.ErrorItem{{Reason: code, Message: "said so"}}}
	if metric, ok := strings.CutPrefix(code, "QUOTA_EXCEEDED "); ok {
		e.Message, e.Errors[0].Reason = "Quota '"+metric+"' exceeded.  Limit: 8.0 in region us-central1.", "quotaExceeded"
	}
	if status, ok := strings.CutPrefix(code, "HTTP "); ok {
		e.Errors = nil
		fmt.Sscan(status, &e.Code)
	}
	return fmt.Errorf("wrapped: %w", e)
}

// ofOperation is an operation's error of the code; nil of a status.
func ofOperation(code string) error {
	if strings.HasPrefix(code, "HTTP ") {
		return nil
	}
	e := &compute.OperationErrorErrors{Code: code, Message: "said so"}
	if metric, ok := strings.CutPrefix(code, "QUOTA_EXCEEDED "); ok {
		e.Code = "QUOTA_EXCEEDED"
		e.ErrorDetails = []*compute.OperationErrorErrorsErrorDetails{{QuotaInfo: &compute.QuotaExceededInfo{MetricName: "compute.googleapis.com/" + strings.ToLower(metric)}}}
	}
	return outcome(&op{Error: &compute.OperationError{Errors: []*compute.OperationErrorErrors{e}}})
}

func TestClassify(t *testing.T) {
	drivertest.Classifies(t, func(doing string, err error) error { return classify(doing, "", err) })
	t.Run("types and quotas are of a market, subnets and projects are not", func(t *testing.T) {
		for code, want := range map[string]drover.Market{
			"ZONE_RESOURCE_POOL_EXHAUSTED": drover.Spot, "QUOTA_EXCEEDED N2_CPUS": drover.Spot, "IP_SPACE_EXHAUSTED": "", "QUOTA_EXCEEDED INSTANCES": "",
		} {
			if got := drover.AsError(classify("", drover.Spot, ofOperation(code)), ""); got.Market != want {
				t.Errorf("%s: %+v", code, got)
			}
		}
	})
	t.Run("a quota's metric is read from the words, if nothing else says it", func(t *testing.T) {
		err := outcome(&op{Error: &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: "QUOTA_EXCEEDED", Message: "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 12.0 globally."}}}})
		if got := drover.AsError(classify("", "", err), ""); got.Scope != drover.ScopeAll || !strings.Contains(got.Message, "CPUS_ALL_REGIONS") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a rate limit says when: as Google does, else at the next minute", func(t *testing.T) {
		now := time.Now()
		e := drover.AsError(classify("", "", ofCall("rateLimitExceeded")), "")
		if wait := e.RetryAt.Std().Sub(now); wait <= 0 || wait > time.Minute || e.RetryAt.Std().Second() != 0 {
			t.Errorf("%+v", e)
		}
		e = drover.AsError(classify("", "", &googleapi.Error{Code: 429, Header: http.Header{"Retry-After": {"7"}}}), "")
		if wait := e.RetryAt.Std().Sub(now); wait < 6*time.Second || wait > 9*time.Second {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an answer that tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{&googleapi.Error{Code: 503}, &googleapi.Error{Code: 418, Errors: []googleapi.ErrorItem{{Reason: "teapot"}}}, ofOperation("WEIRD")} {
			if got := drover.KindOf(classify("", "", err)); got != drover.KindTransient {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
	t.Run("credentials that are refused are told as that", func(t *testing.T) {
		for status, want := range map[int]drover.ErrorKind{400: drover.KindAuthentication, 503: drover.KindTransient} {
			err := fmt.Errorf("get token: %w", &auth.Error{Response: &http.Response{StatusCode: status}, Body: []byte("invalid_grant")})
			if got := drover.KindOf(classify("", "", err)); got != want {
				t.Errorf("%d: %s", status, got)
			}
		}
	})
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "GCE", listLag) }
