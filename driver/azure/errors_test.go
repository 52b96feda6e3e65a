package azure

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	gocmp "github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

func TestPage(t *testing.T) {
	t.Run("shows the driver's call rates, and the rates of every call", func(t *testing.T) {
		page, called := drivertest.ReadPage(t, "azure"), map[string]string{}
		if diff := gocmp.Diff(rates, page.Rates(t, 1)); diff != "" {
			t.Error(diff)
		}
		for _, row := range page.Rows(t, "Rates") {
			called[row[0]] = row[3]
		}
		for call, made := range calls {
			for _, bucket := range made.rates {
				if !strings.Contains(called[bucket]+",", call+",") {
					t.Errorf("the page does not show that %s counts against %s", call, bucket)
				}
			}
		}
	})
}

// answer returns an Azure error as the SDK makes it from a response.
func answer(w wrong) error {
	q, _ := http.NewRequest(http.MethodPut, "https://management.azure.com/x", nil)
	return runtime.NewResponseError(w.response(q))
}

// covers C5 L17
func TestErrors(t *testing.T) {
	drivertest.ShowsLag(t, "Azure", listLag)
	drivertest.Errors(t, "azure", &errs, func(a kit.Answer) error {
		return answer(wrong{status: cmp.Or(a.Status, 409), code: a.Code, message: a.Message})
	})
	t.Run("a rate limit ends when Azure says", func(t *testing.T) {
		for after, want := range map[string]time.Duration{
			"": limitedFor, "17": 17 * time.Second, "900000": time.Hour, "-4": limitedFor, "soon": limitedFor,
			time.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat): 40 * time.Second,
		} {
			// Rate limits have one status and many codes, and this code means other things, too.
			e := drover.AsError(errs.Classify("", answer(wrong{429, "OperationNotAllowed", "quota of calls", after})), "")
			if wait := time.Until(e.RetryAt.Std()); e.Kind != drover.KindRateLimit || wait > want || wait < want-2*time.Second {
				t.Errorf("Retry-After %q: %s in %v", after, e.Kind, wait)
			}
		}
	})
	t.Run("Azure Resource Graph names the time in its own header", func(t *testing.T) {
		for after, want := range map[string]time.Duration{"00:00:05": 5 * time.Second, "99:00:00": time.Hour, "-1:00:00": limitedFor, "soon": limitedFor} {
			err := answer(wrong{429, "RateLimiting", "throttled", ""})
			var answer *azcore.ResponseError
			errors.As(err, &answer)
			answer.RawResponse.Header.Set("x-ms-user-quota-resets-after", after)
			e := drover.AsError(errs.Classify("", err), "")
			if wait := time.Until(e.RetryAt.Std()); e.Kind != drover.KindRateLimit || wait > want || wait < want-2*time.Second {
				t.Errorf("%q: %s in %v", after, e.Kind, wait)
			}
		}
	})
	t.Run("a busy network is a transient error, although its status is a rate limit's", func(t *testing.T) {
		e := drover.AsError(errs.Classify("", answer(wrong{429, "RetryableErrorDueToAnotherOperation", "another operation", "5"})), "")
		if e.Kind != drover.KindTransient || e.RetryAt == 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the case of a code does not matter", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"OverConstrainedAllocationRequest": drover.KindCapacity, "invalidparameter": drover.KindInvalid} {
			if got := drover.KindOf(errs.Classify("", answer(wrong{status: 409, code: code}))); got != want {
				t.Errorf("%s: %s", code, got)
			}
		}
	})
	t.Run("a region or type that a subscription may not use is unsupported, whatever the status", func(t *testing.T) {
		for _, w := range []wrong{
			{403, "RequestDisallowedByAzure", "this policy maintains a set of best available regions where your subscription can deploy resources", ""},
			{403, "RequestDisallowedByPolicy", "the resource was disallowed by policy", ""},
			{400, "VMSizeIsNotPermittedToEnableAcceleratedNetworking", "the size is not in the allowed list of VM sizes", ""},
		} {
			if e := drover.AsError(errs.Classify("", answer(w)), ""); e.Kind != drover.KindUnsupported || e.Hint != "" {
				t.Errorf("%s: %+v", w.code, e)
			}
		}
	})
	t.Run("only a missing role has the hint about roles", func(t *testing.T) {
		for code, want := range map[string]bool{
			"AuthorizationFailed": true, "ScopeLocked": false, "MissingSubscriptionRegistration": false, "ReadOnlyDisabledSubscription": false, "ResourcePurchaseValidationFailed": false,
		} {
			e := drover.AsError(errs.Classify("", answer(wrong{status: 403, code: code})), "")
			if e.Kind != drover.KindAuthentication || e.Hint == "" || (e.Hint == errs.Hints[drover.KindAuthentication]) != want {
				t.Errorf("%s: %+v", code, e)
			}
		}
	})
	t.Run("more disks than a size allows are unsupported", func(t *testing.T) {
		err := answer(wrong{409, "OperationNotAllowed", "The maximum number of data disks allowed to be attached to a VM of this size is 4.", ""})
		if got := drover.KindOf(errs.Classify("", err)); got != drover.KindUnsupported {
			t.Error(got)
		}
	})
	t.Run("the wait that any other error names is kept", func(t *testing.T) {
		e := drover.AsError(errs.Classify("", answer(wrong{503, "ServerTimeout", "", "20"})), "")
		if e.Kind != drover.KindTransient || e.RetryAt == 0 {
			t.Errorf("%+v", e)
		}
	})
}

// signIn is a network on which only the service that issues tokens is called.
type signIn struct {
	status int // 0: there is no answer
	body   string
}

func (s signIn) Do(q *http.Request) (*http.Response, error) {
	if s.status == 0 {
		return nil, errors.New("no route to host")
	}
	reply := response(q, s.status, nil)
	reply.Body = io.NopCloser(strings.NewReader(s.body))
	return reply, nil
}

func TestSignIn(t *testing.T) {
	const refused = `{"error": "invalid_client", "error_description": "AADSTS7000215: invalid client secret"}`
	for _, tt := range []struct {
		name, secret string
		signIn
		want drover.ErrorKind
	}{
		{"a refused secret", "secret", signIn{400, refused}, drover.KindAuthentication},
		{"no identity and no tools", "", signIn{400, refused}, drover.KindAuthentication},
		{"no metadata service and no tools", "", signIn{}, drover.KindAuthentication},
		{"no answer", "secret", signIn{}, drover.KindTransient},
		{"an overloaded service", "secret", signIn{429, "{}"}, drover.KindTransient},
		{"a failing service", "secret", signIn{503, "<html></html>"}, drover.KindTransient},
		{"a failing metadata service", "", signIn{500, "{}"}, drover.KindTransient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for key, value := range map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": tt.secret, "PATH": ""} {
				t.Setenv(key, value)
			}
			c, err := open(t.Context(), options(t, "fleet", "", t.TempDir()), outside{transport: tt.signIn})
			drivertest.Must(t, err)
			_, err = c.List(t.Context(), nil)
			if e := drover.AsError(err, drover.KindInternal); e.Kind != tt.want || (e.Hint != "") != (tt.want == drover.KindAuthentication) {
				t.Errorf("%+v", e)
			}
		})
	}
}
