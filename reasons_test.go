package drover_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonCodes lists the codes in reason.go, in order.
func reasonCodes(t *testing.T) (codes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	return codes
}

// covers D22
func TestReasons(t *testing.T) {
	const file = "docs/reasons.md"
	read := func(t *testing.T, headings ...string) (codes []string) {
		for _, heading := range headings {
			for _, row := range table(t, file, heading) {
				codes = append(codes, strings.Trim(row[0], "`"))
				if len(row) < 3 || slices.Contains(row, "") {
					t.Errorf("the row of %s has an empty cell, or too few cells", row[0])
				}
			}
		}
		return codes
	}
	t.Run("docs/reasons.md has every code and no other, in the same order", func(t *testing.T) {
		got := read(t, "Why something waits", "States of the fleet, clouds and offerings", "Why something ended or is ending")
		if want := reasonCodes(t); !slices.Equal(got, want) {
			t.Errorf("the page has %v, want %v as in reason.go", got, want)
		}
	})
	t.Run("docs/reasons.md has every kind of error, in the same order", func(t *testing.T) {
		if got, want := read(t, "Kinds of error"), constants(t, "ErrorKind"); !slices.Equal(got, want) {
			t.Errorf("the page has %v, want %v as in errors.go", got, want)
		}
	})
}
