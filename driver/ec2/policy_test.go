package ec2

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drover/driver/drivertest"
)

// made matches the name of a call in the source: a string passed as an argument, not a map key or a parameter.
var made = regexp.MustCompile(`"((?:Create|Delete|Describe|Get|Import|Modify|Start|Stop|Terminate)[A-Z]\w+)"[,)]`)

// implied are permissions that a call needs in addition to the one with its own name: a fleet runs its instance on the
// caller's behalf, gives it tags and a profile, and creates the account's roles for spot and fleets if they are
// missing.
var implied = map[string][]string{"CreateFleet": {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole", "iam:CreateServiceLinkedRole"}}

func TestPolicyMatchesCalls(t *testing.T) {
	files, err := filepath.Glob("*.go")
	drivertest.Must(t, err)
	var want []string
	for _, file := range files {
		if file == "api.go" || strings.HasSuffix(file, "_test.go") { // these name calls without making them
			continue
		}
		source, err := os.ReadFile(file)
		drivertest.Must(t, err)
		for _, m := range made.FindAllStringSubmatch(string(source), -1) {
			name := m[1]
			if _, has := rates[name]; !has {
				t.Errorf("%s has no rate", name)
			}
			want = append(append(want, serviceOf(name).name+":"+name), implied[name]...)
		}
	}
	drivertest.ShowsPermissions(t, "ec2", `"([a-z0-9]+:[A-Z][A-Za-z]+)"[^:]`, want)
}
