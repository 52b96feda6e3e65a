package driver_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layout lists every driver's files and, for each, the important declarations in their order. A reader of one driver
// finds the same things in the same place in another.
var layout = []struct {
	file     string
	optional bool // only where the cloud supports it
	has      []string
}{
	{"open.go", false, []string{"longestFleet", "listLag", "cloud", "Open", "open", "cloud.Capabilities", "cloud.Close"}},
	{"config.go", false, []string{"maxUserData", "Config", "Config.Default", "Config.FirstBoot", "Config.Check"}},
	{"errors.go", false, []string{"limitedFor", "errs", "read"}},
	{"api.go", false, []string{"rates", "connect"}},
	{"offerings.go", false, []string{"cloud.Offerings", "cloud.listed"}},
	{"create.go", false, []string{"longestName", "demands", "cloud.Create", "readTemplate"}},
	{"list.go", false, []string{"cloud.List", "cloud.Describe", "cloud.SetTags", "cloud.VerifyHostKey"}},
	{"destroy.go", false, []string{"cloud.Destroy", "cloud.Stop", "cloud.Start", "cloud.Leftovers", "cloud.Remove"}},
	{"images.go", true, []string{"cloud.FindImages"}},
	{"prices.go", true, []string{"cloud.fetchPrices", "cloud.PriceHistory"}},
	{"volumes.go", true, []string{"cloud.GrowDisk"}},
}

// needed are the declarations that every driver must have.
var needed = []string{
	"cloud", "Open", "cloud.Capabilities", "cloud.Close", "Config", "Config.Default", "Config.FirstBoot", "Config.Check", "errs", "read",
	"cloud.Offerings", "cloud.Create", "cloud.List", "cloud.Describe", "cloud.SetTags", "cloud.Destroy",
}

// more lists files that only one driver has, with their contents.
var more = map[string]map[string]string{
	"local": {
		"faults.go": "configurable faults and reclaimed instances", "guest.go": "an instance's inner process, and its SSH sessions",
		"instance.go": "an instance's outer process",
	},
}

// apart lists the packages that are not drivers of this layout.
var apart = []string{"drivertest", "external", "kit", "middleware"}

func TestEveryDriverHasTheSameFilesAndDeclarations(t *testing.T) {
	drivers, err := filepath.Glob("*/open.go")
	if err != nil || len(drivers) < 8 {
		t.Fatalf("%v, %v", drivers, err)
	}
	for _, open := range drivers {
		name := filepath.Dir(open)
		if slices.Contains(apart, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			checkFiles(t, name)
			checkDeclarations(t, name)
		})
	}
}

func checkFiles(t *testing.T, driver string) {
	known := maps.Clone(more[driver])
	if known == nil {
		known = map[string]string{}
	}
	for _, l := range layout {
		if _, err := os.Stat(filepath.Join(driver, l.file)); err != nil && !l.optional {
			t.Errorf("it has no %s", l.file)
		}
		known[l.file] = "the layout"
	}
	for _, file := range sources(t, driver) {
		if known[filepath.Base(file)] == "" {
			t.Errorf("no other driver has %s: move its contents into a file of the layout", file)
		}
	}
}

func checkDeclarations(t *testing.T, driver string) {
	places := map[string]string{} // by declaration
	for _, file := range sources(t, driver) {
		var wanted []string
		for _, l := range layout {
			if l.file == filepath.Base(file) {
				wanted = l.has
			}
		}
		var found []string
		for _, name := range declarations(t, file) {
			places[name] = filepath.Base(file)
			if slices.Contains(wanted, name) {
				found = append(found, name)
			}
		}
		inOrder := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return !slices.Contains(found, name) })
		if !slices.Equal(found, inOrder) {
			t.Errorf("%s declares %v, want the order %v", file, found, inOrder)
		}
	}
	for _, name := range needed {
		if places[name] == "" {
			t.Errorf("it has no %s", name)
		}
	}
	for _, l := range layout {
		for _, name := range l.has {
			if at := places[name]; at != "" && at != l.file {
				t.Errorf("%s is declared in %s, in other drivers in %s", name, at, l.file)
			}
		}
	}
}

// sources returns a driver's files, without its tests.
func sources(t *testing.T, driver string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(driver, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// declarations returns the names that a file declares, in order. A method's name follows its type's name, whether or
// not the receiver is a pointer.
func declarations(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	if p, is := e.(*ast.StarExpr); is {
		e = p.X
	}
	if name, is := e.(*ast.Ident); is {
		return name.Name
	}
	return "cloud"
}
