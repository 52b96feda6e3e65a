package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestOutputsInParts(t *testing.T) {
	_, s := serve(t, &fake{})
	ask := func(header, value string) (*http.Response, string) {
		t.Helper()
		got := do(t, s.URL, "GET", "/v1/jobs/1/outputs/content?path=a", "Bearer admin", "", header+": "+value)
		return got.Response, got.text
	}
	whole, text := ask("Accept", "*/*")
	tag := whole.Header.Get("ETag")
	if whole.StatusCode != 200 || text != content || len(tag) != 66 || whole.Header.Get("Accept-Ranges") != "bytes" {
		t.Fatalf("%d %q %v", whole.StatusCode, text, whole.Header)
	}
	for _, c := range []struct {
		what, header, value string
		status              int
		text                string
	}{
		{"from a byte to the end", "Range", "bytes=8-", 206, content[8:]},
		{"up to a byte", "Range", "bytes=1-3", 206, content[1:4]},
		{"the last bytes", "Range", "bytes=-4", 206, content[len(content)-4:]},
		{"several parts give the whole", "Range", "bytes=0-1,4-5", 200, content},
		{"an unchanged output is not sent again", "If-None-Match", tag, 304, ""},
		{"an output with another hash is sent", "If-None-Match", `"other"`, 200, content},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got, text := ask(c.header, c.value); got.StatusCode != c.status || text != c.text {
				t.Errorf("%d %q", got.StatusCode, text)
			}
		})
	}
	t.Run("a start after the end is refused with a problem", func(t *testing.T) {
		got, text := ask("Range", "bytes=99-")
		if got.StatusCode != 416 || got.Header.Get("Content-Type") != "application/problem+json" || got.Header.Get("Content-Range") != "bytes */16" ||
			got.Header.Get("ETag") != "" || !strings.Contains(text, `"status":416`) {
			t.Errorf("%d %q %v", got.StatusCode, text, got.Header)
		}
	})
	t.Run("the description names the answers to both headers", func(t *testing.T) {
		var api struct {
			Paths map[string]map[string]struct {
				Parameters []struct{ Name, In string }
				Responses  map[string]any
			}
		}
		if err := json.Unmarshal([]byte(do(t, s.URL, "GET", "/openapi.json", "Bearer admin", "").text), &api); err != nil {
			t.Fatal(err)
		}
		op := api.Paths["/v1/jobs/{id}/outputs/content"]["get"]
		for _, name := range []string{"Range", "If-None-Match"} {
			if !slices.Contains(op.Parameters, struct{ Name, In string }{name, "header"}) {
				t.Errorf("no header %s", name)
			}
		}
		for _, status := range []string{"200", "206", "304"} {
			if op.Responses[status] == nil {
				t.Errorf("no response %s", status)
			}
		}
	})
}
