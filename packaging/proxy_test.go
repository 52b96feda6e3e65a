package packaging_test

import (
	"os"
	"strings"
	"testing"
)

// TestProxyIsDocumented compares the installed example with the one in the documents.
func TestProxyIsDocumented(t *testing.T) {
	example, err := os.ReadFile("Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(example), "\n")
	if !strings.Contains(string(page), text) {
		t.Error("docs/operations.md shows a different Caddyfile")
	}
}
