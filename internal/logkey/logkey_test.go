package logkey

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// constants returns the keys of this package by name.
func constants(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	ast.Inspect(parse(t, "logkey.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			keys[spec.Names[0].Name], _ = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	return keys
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKeys(t *testing.T) {
	seen := map[string]string{}
	for name, key := range constants(t) {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(key) {
			t.Errorf("%s is spelled %q", name, key)
		}
		if seen[key] != "" {
			t.Errorf("%s and %s are both spelled %q", name, seen[key], key)
		}
		seen[key] = name
	}
}

// covers D20
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, logs, _ := strings.Cut(string(text), "## Logs\n")
	for _, key := range constants(t) {
		if !regexp.MustCompile("(?m)^\\|.*`" + key + "`").MatchString(logs) {
			t.Errorf("docs/metrics.md has no row with the key %s", key)
		}
	}
}

// TestNoKeyIsSpelledElsewhere checks every call that writes a line.
// covers D20
func TestNoKeyIsSpelledElsewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			for _, key := range spelled(parse(t, name)) {
				t.Errorf("%s spells the key %s: use a constant of internal/logkey", strings.TrimPrefix(name, root+"/"), key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLiteralKeysAreFound(t *testing.T) {
	for code, want := range map[string]string{
		`log.Info("text", "cloud", c)`:                     `["cloud"]`,
		`c.cfg.Log.Warn("text", logkey.Cloud, c)`:          `[]`,
		`log.With("a", 1).Info("text")`:                    `["a"]`,
		`x.LogAttrs(ctx, level, "text", slog.Int("n", 1))`: `["n"]`,
		`drover.Errorf(kind, "text %s", "x")`:              `[]`,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a; func f() { "+code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(spelled(f)); got != want {
			t.Errorf("%s: found %s, not %s", code, got, want)
		}
	}
}

// before is how many arguments of a logger's method come before its keys.
var before = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0}

// spelled returns the keys that are literals.
func spelled(f *ast.File) (keys []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if on := nameOf(fun.X); on == "slog" && len(call.Args) == 2 {
			keys = append(keys, literals(call.Args[:1])...)
		} else if skip, ok := before[fun.Sel.Name]; ok && strings.EqualFold(on, "log") {
			keys = append(keys, literals(call.Args[skip:])...)
		}
		return true
	})
	return keys
}

func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}

// literals returns the literal keys among alternating keys and values.
func literals(args []ast.Expr) (keys []string) {
	for i, arg := range args {
		if lit, ok := arg.(*ast.BasicLit); ok && i%2 == 0 && lit.Kind == token.STRING {
			keys = append(keys, lit.Value)
		}
	}
	return keys
}
