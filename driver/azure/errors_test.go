package azure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
)

func TestPage(t *testing.T) {
	t.Run("its rates are those that are kept, and every call counts under them", func(t *testing.T) {
		page, called := drivertest.ReadPage(t, "azure"), map[string]string{}
		if diff := cmp.Diff(rates, page.Rates(t, 1)); diff != "" {
			t.Error(diff)
		}
		for _, row := range page.Rows(t, "Rates") {
			called[row[0]] = row[3]
		}
		for call, buckets := range counts {
			for _, bucket := range buckets {
				if !strings.Contains(called[bucket]+",", call+",") {
					t.Errorf("%s counts under %s, which the page does not say", call, bucket)
				}
			}
		}
	})
}

// answer is an error of Azure's, as the SDK makes it of a response.
func answer(w wrong) error {
	q, _ := http.NewRequest(http.MethodPut, "https://management.azure.com/x", nil)
	return runtime.NewResponseError(w.response(q))
}

func TestClasses(t *testing.T) {
	page := drivertest.ReadPage(t, "azure")
	t.Run("the page shows the table", func(t *testing.T) {
		var want [][]string
		for _, c := range classes {
			want = append(want, []string{c.code, c.says, string(c.kind), string(c.scope), map[bool]string{true: "yes"}[c.market]})
		}
		page.Shows(t, "Errors", want)
		page.Sourced(t, "Errors")
	})
	t.Run("every code of the page has its class", func(t *testing.T) {
		for _, row := range page.Rows(t, "Errors") {
			w := wrong{status: 409, code: strings.ReplaceAll(row[0], "*", "SomethingOrOther"), message: "it is said " + strings.ToUpper(row[1]) + "."}
			if status, ok := strings.CutPrefix(w.code, "HTTP "); ok {
				fmt.Sscan(status, &w.status)
				w.code = ""
			}
			e := drover.AsError(classify("try it", drover.Spot, fmt.Errorf("wrapped: %w", answer(w))), drover.KindInternal)
			got := []string{string(e.Kind), string(e.Scope), map[bool]string{true: "yes"}[e.Market == drover.Spot]}
			if diff := cmp.Diff(row[2:5], got); diff != "" || !strings.HasPrefix(e.Message, "try it: ") || !strings.HasSuffix(e.Message, w.message) {
				t.Errorf("%s %s: %s\n%s", row[0], row[1], e.Message, diff)
			}
		}
	})
	t.Run("no row is hidden by one before it", func(t *testing.T) {
		for _, c := range classes {
			if classOf(c.code, c.says) != c {
				t.Errorf("%s %s is taken for %v", c.code, c.says, classOf(c.code, c.says))
			}
		}
	})
}

func TestClassify(t *testing.T) {
	drivertest.Classifies(t, func(doing string, err error) error { return classify(doing, "", err) })
	t.Run("a rate limit says when, as Azure does", func(t *testing.T) {
		for after, want := range map[string]time.Duration{
			"": limitedFor, "17": 17 * time.Second, "900000": time.Hour, "-4": limitedFor, "soon": limitedFor,
			time.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat): 40 * time.Second,
		} {
			// Too many calls have one status and many codes, of which this one means other things too.
			e := drover.AsError(classify("", "", answer(wrong{429, "OperationNotAllowed", "quota of calls", after})), "")
			if wait := time.Until(e.RetryAt.Std()); e.Kind != drover.KindRateLimit || wait > want || wait < want-2*time.Second {
				t.Errorf("Retry-After %q: %s in %v", after, e.Kind, wait)
			}
		}
	})
	t.Run("Azure Resource Graph says it in a header of its own", func(t *testing.T) {
		for after, want := range map[string]time.Duration{"00:00:05": 5 * time.Second, "99:00:00": time.Hour, "-1:00:00": limitedFor, "soon": limitedFor} {
			err := answer(wrong{429, "RateLimiting", "throttled", ""})
			var said *azcore.ResponseError
			errors.As(err, &said)
			said.RawResponse.Header.Set("x-ms-user-quota-resets-after", after)
			e := drover.AsError(classify("", "", err), "")
			if wait := time.Until(e.RetryAt.Std()); e.Kind != drover.KindRateLimit || wait > want || wait < want-2*time.Second {
				t.Errorf("%q: %s in %v", after, e.Kind, wait)
			}
		}
	})
	t.Run("what the network is busy with is no rate limit, though it has the status of one", func(t *testing.T) {
		e := drover.AsError(classify("", "", answer(wrong{429, "RetryableErrorDueToAnotherOperation", "another operation", "5"})), "")
		if e.Kind != drover.KindTransient || e.RetryAt == 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a code means the same in capitals and small letters", func(t *testing.T) {
		for code, want := range map[string]drover.ErrorKind{"OverConstrainedAllocationRequest": drover.KindCapacity, "invalidparameter": drover.KindInvalid} {
			if got := drover.KindOf(classify("", "", answer(wrong{status: 409, code: code}))); got != want {
				t.Errorf("%s: %s", code, got)
			}
		}
	})
	t.Run("a size that takes fewer disks is unsupported, and no disk that is attached", func(t *testing.T) {
		err := answer(wrong{409, "OperationNotAllowed", "The maximum number of data disks allowed to be attached to a VM of this size is 4.", ""})
		if got := drover.KindOf(classify("", "", err)); got != drover.KindUnsupported {
			t.Error(got)
		}
	})
	t.Run("whatever else says when to come again is heeded", func(t *testing.T) {
		e := drover.AsError(classify("", "", answer(wrong{503, "ServerTimeout", "", "20"})), "")
		if e.Kind != drover.KindTransient || e.RetryAt == 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an answer that tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{answer(wrong{status: 500, code: "Weird"}), answer(wrong{status: 502})} {
			if got := drover.KindOf(classify("", "", err)); got != drover.KindTransient {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "Azure", listLag) }
