package ec2

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drover/driver/drivertest"
)

// made is a call in the source: a word that is passed on, and neither a key nor a parameter.
var made = regexp.MustCompile(`"((?:Create|Delete|Describe|Get|Import|Modify|Start|Stop|Terminate)[A-Z]\w+)"[,)]`)

// implied are the permissions that no call of ours has the name of, by the one that needs them: a fleet starts its
// instance in our name, gives it tags and a profile, and makes the account's roles for spot and for fleets if it has
// none yet.
var implied = map[string][]string{"CreateFleet": {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole", "iam:CreateServiceLinkedRole"}}

func TestThePolicyIsThatOfTheCallsThatAreMade(t *testing.T) {
	files, err := filepath.Glob("*.go")
	drivertest.Must(t, err)
	var want []string
	for _, file := range files {
		if file == "api.go" || strings.HasSuffix(file, "_test.go") { // which name calls without making them
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
