package drover_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pure lists the packages whose results depend only on their arguments: they are the same on every computer, at every
// time, in every replay.
var pure = []string{"internal/engine", "internal/engine/budget", "internal/engine/fleet", "internal/engine/forecast", "internal/engine/market", "internal/engine/pool", "internal/engine/queue", "internal/engine/timers", "internal/engine/verdict", "internal/billing", "internal/pack", "internal/runtimes"}

// impureImports are packages that would make results depend on something else.
var impureImports = []string{"context", "crypto/rand", "database/sql", "io/fs", "log", "log/slog", "maps", "math/rand", "math/rand/v2",
	"net", "os", "runtime", "sync", "sync/atomic", "syscall", "unique", "unsafe"}

// clockCalls are the functions of package time that read the clock or wait for it. Durations are allowed.
var clockCalls = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// rounding lists the packages that may use floats, but only in a form that no compiler may fuse: every product is
// rounded by its own conversion, float64(x*y). All other float operations are the same on every processor.
var rounding = []string{"internal/pack"}

// orderless lists the functions that loop over a map although no result depends on its order, each with the reason.
var orderless = map[string]string{}

func TestPurity(t *testing.T) {
	exports := exportData(t, pure)
	for _, dir := range pure {
		t.Run(dir+" depends only on its arguments", func(t *testing.T) {
			for _, fault := range impurities(t, dir, exports, slices.Contains(rounding, dir)) {
				t.Error(fault)
			}
		})
	}
	t.Run("finds an unrounded product of floats where floats are allowed", func(t *testing.T) {
		code := `package a; func f(x, y, z float64) float64 { const c = 2 * 0.5; x *= y; return x*y + z + c }; func g(x, y float64) float64 { return float64(x*y) + x/y }`
		file := filepath.Join(t.TempDir(), "a.go")
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if faults := impurities(t, filepath.Dir(file), exports, true); len(faults) != 2 {
			t.Errorf("found %q, want two faults", faults)
		}
	})
	t.Run("finds impure code", func(t *testing.T) {
		for code, want := range map[string]string{
			`import "os"`:                                        `imports "os"`,
			`import "time"; var t = time.Now()`:                  "time.Now",
			`import "time"; var now = time.Now`:                  "time.Now",
			`func f() { go f() }`:                                "goroutine",
			`func f() { select {} }`:                             "select",
			`var c chan int`:                                     "channel",
			`var x = 1.5 + float64(len("a"))`:                    "float",
			`func f(m map[int]int) { for range m {} }`:           "order of a map",
			`type M map[int]int; func f(m M) { for range m {} }`: "order of a map",
			`func init() {}`:                                     "init",
		} {
			file := filepath.Join(t.TempDir(), "a.go")
			if err := os.WriteFile(file, []byte("package a; "+code), 0o600); err != nil {
				t.Fatal(err)
			}
			if faults := impurities(t, filepath.Dir(file), exports, false); !strings.Contains(strings.Join(faults, "\n"), want) {
				t.Errorf("%s: found %q, want %q", code, faults, want)
			}
		}
	})
}

// exportData finds the compiled form of everything that the packages import.
func exportData(t *testing.T, dirs []string) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	list := exec.Command("go", args...)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
}

// impurities lists a package's violations.
func impurities(t *testing.T, dir string, exports map[string]string, floats bool) []string {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{
		Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Error:    func(error) {}, // go build reports these; a snippet in this test may import a package that is not compiled
	}
	conf.Check(dir, set, files, info)
	l := &lens{set: set, info: info, floats: floats, rounded: map[ast.Expr]bool{}}
	for _, f := range files {
		l.file(f)
	}
	return l.faults
}

// lens inspects the code of one package.
type lens struct {
	set     *token.FileSet
	info    *types.Info
	floats  bool              // floats are allowed if products are rounded
	rounded map[ast.Expr]bool // the rounded products
	faults  []string
}

func (l *lens) add(n ast.Node, format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf("%v: %s", l.set.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

func (l *lens) file(f *ast.File) {
	for _, spec := range f.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); slices.Contains(impureImports, path) {
			l.add(spec, "imports %q: pass what it needs in, as an event or a value", path)
		}
	}
	for _, d := range f.Decls {
		fn, _ := d.(*ast.FuncDecl)
		if fn != nil && fn.Name.Name == "init" {
			l.add(fn, "has an init function: initialize in New")
		}
		ast.Inspect(d, func(n ast.Node) bool {
			l.node(n, fn)
			return true
		})
	}
}

func (l *lens) node(n ast.Node, in *ast.FuncDecl) {
	switch n := n.(type) {
	case *ast.GoStmt:
		l.add(n, "starts a goroutine: return an effect for the shell to carry out")
	case *ast.SelectStmt:
		l.add(n, "has a select: do not wait, accept events")
	case *ast.ChanType:
		l.add(n, "has a channel: accept events and return decisions")
	case *ast.RangeStmt:
		if over := l.info.TypeOf(n.X); over != nil && isMap(over) && (in == nil || orderless[in.Name.Name] == "") {
			l.add(n, "depends on the order of a map: keep a sorted slice beside it, or list the function in purity_test.go with the reason why the order has no effect")
		}
	case *ast.SelectorExpr:
		if o := l.info.Uses[n.Sel]; o != nil && o.Pkg() != nil && o.Pkg().Path() == "time" && slices.Contains(clockCalls, o.Name()) {
			l.add(n, "reads the clock with time.%s: use the event's time", o.Name())
		}
	}
	if l.floats {
		l.product(n)
	} else if e, ok := n.(ast.Expr); ok && isFloat(l.info.TypeOf(e)) {
		l.add(n, "computes with a float: processors differ in the last digit; count in integers of a small unit")
	}
}

// product reports a product of floats that is not rounded at once.
func (l *lens) product(n ast.Node) {
	const fault = "multiplies floats without rounding the product, which some processors then fuse with a sum: write float64(x*y)"
	switch n := n.(type) {
	case *ast.CallExpr:
		if len(n.Args) == 1 && l.info.Types[n.Fun].IsType() && isFloat(l.info.TypeOf(n.Fun)) {
			l.rounded[n.Args[0]] = true
		}
	case *ast.BinaryExpr:
		if n.Op == token.MUL && isFloat(l.info.TypeOf(n)) && l.info.Types[n].Value == nil && !l.rounded[n] {
			l.add(n, fault)
		}
	case *ast.AssignStmt:
		if n.Tok == token.MUL_ASSIGN && isFloat(l.info.TypeOf(n.Lhs[0])) {
			l.add(n, fault)
		}
	}
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}
