package ec2

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/driver/drivertest"
)

// made is a call in the source: by which client, and which.
var made = regexp.MustCompile(`c\.api\.(ec2|parameters|prices)\(\)\.(\w+)`)

// permitted is what begins a permission of a client's calls.
var permitted = map[string]string{"ec2": "ec2:", "parameters": "ssm:", "prices": "pricing:"}

// implied are the permissions that no call of ours has the name of, by the one that needs them: a fleet starts its instance in our name, gives it
// tags and a profile, and makes the account's roles for spot and for fleets if it has none yet.
var implied = map[string][]string{"CreateFleet": {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole", "iam:CreateServiceLinkedRole"}}

func TestThePolicyIsThatOfTheCallsThatAreMade(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(source), -1) {
			client, name := m[1], m[2]
			if _, has := rates[name]; !has {
				t.Errorf("%s has no rate", name)
			}
			want = append(append(want, permitted[client]+name), implied[name]...)
		}
	}
	slices.Sort(want)
	shown := drivertest.ReadPage(t, "ec2").Words(t, "Permissions", regexp.MustCompile(`"([a-z0-9]+:[A-Z][A-Za-z]+)"[^:]`))
	if diff := cmp.Diff(slices.Compact(want), shown); diff != "" {
		t.Errorf("the calls (-) and the page's policy (+): %s", diff)
	}
}
