package httpapi_test

import (
	"net/http"
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
	t.Run("a start after the end is refused", func(t *testing.T) {
		if got, _ := ask("Range", "bytes=99-"); got.StatusCode != 416 {
			t.Errorf("%d", got.StatusCode)
		}
	})
}
