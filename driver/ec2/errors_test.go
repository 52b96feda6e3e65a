package ec2

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/internal/config"
)

// page reads the rows of the table under a heading of the driver's page, without its head.
func page(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/clouds/ec2.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(cells[i], " `")
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("docs/clouds/ec2.md has no table under %q", heading)
	}
	return rows[2:]
}

func TestPage(t *testing.T) {
	t.Run("its configurations are good", func(t *testing.T) {
		text, err := os.ReadFile("../../docs/clouds/ec2.md")
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```yaml\n")[1:]
		for _, part := range parts {
			yaml, _, _ := strings.Cut(part, "```")
			c, err := config.Parse("ec2.md", []byte(yaml), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var own Config
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
	t.Run("its rates are those that are kept", func(t *testing.T) {
		shown := map[string]driver.Rate{}
		for _, row := range page(t, "Rates") {
			var r driver.Rate
			if _, err := fmt.Sscan(row[1]+" "+row[2], &r.Burst, &r.PerSecond); err != nil {
				break // the table after it
			}
			shown[row[0]] = r
		}
		if diff := cmp.Diff(rates, shown); diff != "" {
			t.Error(diff)
		}
	})
}

func TestClasses(t *testing.T) {
	rows := page(t, "Errors")
	t.Run("the page shows the table", func(t *testing.T) {
		var shown, want [][]string
		for _, row := range rows {
			shown = append(shown, row[:3])
		}
		for _, c := range classes {
			want = append(want, []string{c.code, string(c.kind), string(c.scope)})
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("every code of the page has its class", func(t *testing.T) {
		for _, row := range rows {
			code := strings.ReplaceAll(row[0], "*", "SomethingOrOther")
			err := classify("try it", drover.Spot, fmt.Errorf("operation error: %w", &smithy.GenericAPIError{Code: code, Message: "said so"}))
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
	t.Run("types and quotas are of a market, zones and accounts are not", func(t *testing.T) {
		for code, want := range map[string]drover.Market{
			"InsufficientInstanceCapacity": drover.Spot, "MaxSpotInstanceCountExceeded": drover.Spot,
			"InsufficientFreeAddressesInSubnet": "", "VolumeLimitExceeded": "",
		} {
			if got := drover.AsError(classify("", drover.Spot, answer(code)), ""); got.Market != want {
				t.Errorf("%s: %+v", code, got)
			}
		}
	})
	t.Run("a rate limit says when", func(t *testing.T) {
		before := time.Now()
		e := drover.AsError(classify("", "", answer("RequestLimitExceeded")), "")
		if e.RetryAt < drover.TimeOf(before) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("what tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{answer("Weird"), errors.New("connection reset by peer")} {
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
