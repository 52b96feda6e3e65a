package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/internal/config"
)

const pageFile = "../../docs/clouds/azure.md"

// page reads the rows of the table under a heading of the driver's page, without its head.
func page(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table under %q", pageFile, heading)
	}
	return rows[2:]
}

func TestPage(t *testing.T) {
	t.Run("its configurations are good", func(t *testing.T) {
		text, err := os.ReadFile(pageFile)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```yaml\n")[1:]
		for _, part := range parts {
			yaml, _, _ := strings.Cut(part, "```")
			c, err := config.Parse("azure.md", []byte(yaml), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var own Config
			own.Default()
			if err := c.Clouds[0].Decode(&own); err != nil {
				t.Error(err)
			}
			if err := own.Check(); err != nil {
				t.Error(err)
			}
		}
		if len(parts) != 2 {
			t.Errorf("%d configurations", len(parts))
		}
	})
	t.Run("its rates are those that are kept, and every call counts under them", func(t *testing.T) {
		shown, called := map[string]driver.Rate{}, map[string]string{}
		for _, row := range page(t, "Rates") {
			var r driver.Rate
			if _, err := fmt.Sscan(row[1]+" "+row[2], &r.Burst, &r.PerSecond); err != nil {
				t.Fatal(err)
			}
			shown[row[0]], called[row[0]] = r, row[3]
		}
		if diff := cmp.Diff(rates, shown); diff != "" {
			t.Error(diff)
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
	rows := page(t, "Errors")
	t.Run("the page shows the table", func(t *testing.T) {
		var shown, want [][]string
		for _, row := range rows {
			shown = append(shown, row[:5])
		}
		for _, c := range classes {
			want = append(want, []string{c.code, c.says, string(c.kind), string(c.scope), map[bool]string{true: "yes"}[c.market]})
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("every code of the page has its class", func(t *testing.T) {
		for _, row := range rows {
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
	t.Run("a rate limit says when, as Azure does", func(t *testing.T) {
		for after, want := range map[string]time.Duration{
			"": limitedFor, "17": 17 * time.Second, "900000": limitedMax, "-4": limitedFor, "soon": limitedFor,
			time.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat): 40 * time.Second,
		} {
			// Too many calls have one status and many codes, of which this one means other things too.
			e := drover.AsError(classify("", "", answer(wrong{429, "OperationNotAllowed", "quota of calls", after})), "")
			if wait := time.Until(e.RetryAt.Std()); e.Kind != drover.KindRateLimit || wait > want || wait < want-2*time.Second {
				t.Errorf("Retry-After %q: %s in %v", after, e.Kind, wait)
			}
		}
	})
	t.Run("whatever else says when to come again is heeded", func(t *testing.T) {
		e := drover.AsError(classify("", "", answer(wrong{503, "ServerTimeout", "", "20"})), "")
		if e.Kind != drover.KindTransient || e.RetryAt == 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("what tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{answer(wrong{status: 500, code: "Weird"}), answer(wrong{status: 502}), errors.New("connection reset by peer")} {
			if got := drover.KindOf(classify("", "", err)); got != drover.KindTransient {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
	t.Run("what has a class keeps it, and an ended context stays one", func(t *testing.T) {
		if err := classify("do", "", drover.Errorf(drover.KindQuota, "x")); drover.KindOf(err) != drover.KindQuota || err.Error() != "do: x" {
			t.Error(err)
		}
		if err := classify("do", "", fmt.Errorf("canceled: %w", context.Canceled)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if classify("do", "", nil) != nil {
			t.Error("an error out of nothing")
		}
	})
}
