package gce

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

func TestPage(t *testing.T) {
	t.Run("shows the driver's call rates", func(t *testing.T) {
		if diff := cmp.Diff(rates, drivertest.ReadPage(t, "gce").Rates(t, 3)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("shows a role with exactly the permissions that the driver's calls need", func(t *testing.T) {
		var want []string
		for id := range answers {
			needs, known := permissions[id]
			if !known {
				t.Errorf("%s is not in permissions", id)
			}
			want = append(want, needs...)
		}
		drivertest.ShowsPermissions(t, "gce", `(?m)^- (compute\.[A-Za-z.]+)$`, want)
	})
}

// permissions are those that the reference of each call names; for an insert, also those to create and use the
// instance's other resources. The price list needs none: anybody who has enabled the API may read it.
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
	"compute.projects.get":            {"compute.projects.get"},
	"cloudbilling.services.skus.list": nil,
}

// covers C5 L17
func TestErrors(t *testing.T) {
	drivertest.Errors(t, "gce", &errs, func(a kit.Answer) error { return ofCall(a) })
	drivertest.Errors(t, "gce", &errs, func(a kit.Answer) error {
		if a.Code == "" {
			return nil // an operation has no status
		}
		return ofOperation(a)
	})
	t.Run("a quota's metric is read from the message if no field has it", func(t *testing.T) {
		err := ended(thing{"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 12.0 globally."})
		if got := drover.AsError(errs.Classify("", err), ""); got.Scope != drover.ScopeAll || !strings.Contains(got.Message, "CPUS_ALL_REGIONS") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a rate limit ends when Google says, otherwise at the next minute", func(t *testing.T) {
		now := time.Now()
		e := drover.AsError(errs.Classify("", ofCall(kit.Answer{Code: "rateLimitExceeded"})), "")
		if wait := e.RetryAt.Std().Sub(now); wait <= 0 || wait > time.Minute || e.RetryAt.Std().Second() != 0 {
			t.Errorf("%+v", e)
		}
		e = drover.AsError(errs.Classify("", refused(429, http.Header{"Retry-After": {"7"}}, nil)), "")
		if wait := e.RetryAt.Std().Sub(now); wait < 6*time.Second || wait > 9*time.Second {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a 404 response that is not Google's is transient", func(t *testing.T) {
		if err := errs.Classify("", refused(404, nil, []byte("<html>"))); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("refused credentials are an authentication error", func(t *testing.T) {
		for status, want := range map[int]drover.ErrorKind{400: drover.KindAuthentication, 503: drover.KindTransient} {
			err := fmt.Errorf("get token: %w", &auth.Error{Response: &http.Response{StatusCode: status}, Body: []byte("invalid_grant")})
			if got := drover.KindOf(errs.Classify("", err)); got != want {
				t.Errorf("%d: %s", status, got)
			}
		}
	})
}

// ofCall returns the error of a call's answer, with the code, if any, as its reason.
func ofCall(a kit.Answer) error {
	e := thing{"code": max(a.Status, 399), "message": a.Message}
	if metric, ok := strings.CutPrefix(a.Code, "QUOTA_EXCEEDED "); ok {
		e["message"], a.Code = a.Message+" Quota '"+metric+"' exceeded.  Limit: 8.0 in region us-central1.", "quotaExceeded"
	}
	if a.Code != "" {
		e["errors"] = []thing{{"reason": "unknown"}, {"reason": a.Code}}
	}
	text, err := json.Marshal(thing{"error": e})
	if err != nil {
		panic(err)
	}
	return refused(max(a.Status, 399), nil, text)
}

// ofOperation returns the error of a failed operation.
func ofOperation(a kit.Answer) error {
	e := thing{"code": a.Code, "message": a.Message}
	if metric, ok := strings.CutPrefix(a.Code, "QUOTA_EXCEEDED "); ok {
		e["code"], e["errorDetails"] = "QUOTA_EXCEEDED", []thing{{"quotaInfo": thing{"metricName": "compute.googleapis.com/" + strings.ToLower(metric)}}}
	}
	return ended(e)
}

// ended is the result of an operation with an error.
func ended(e thing) error {
	return outcome(as[resource](thing{"error": thing{"errors": []thing{e}}}))
}
