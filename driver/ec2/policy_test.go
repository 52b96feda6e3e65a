package ec2

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

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
	drivertest.Must(t, err)
	var want []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		drivertest.Must(t, err)
		for _, m := range made.FindAllStringSubmatch(string(source), -1) {
			client, name := m[1], m[2]
			if _, has := rates[name]; !has {
				t.Errorf("%s has no rate", name)
			}
			want = append(append(want, permitted[client]+name), implied[name]...)
		}
	}
	drivertest.ShowsPermissions(t, "ec2", `"([a-z0-9]+:[A-Z][A-Za-z]+)"[^:]`, want)
}
