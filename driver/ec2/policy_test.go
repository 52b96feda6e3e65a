package ec2

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/driver/drivertest"
)

// elsewhere are the calls of which EC2 is not the service.
var elsewhere = map[string]string{"GetParameter": "ssm:GetParameter", "GetProducts": "pricing:GetProducts"}

// implied are the permissions that no call of ours has the name of, by the one that needs them: a fleet starts its instance in our name, gives it
// tags and a profile, and makes the account's roles for spot and for fleets if it has none yet.
var implied = map[string][]string{"CreateFleet": {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole", "iam:CreateServiceLinkedRole"}}

func TestThePolicyIsThatOfTheCallsThatAreMade(t *testing.T) {
	var want []string
	made := reflect.TypeFor[calls]()
	for i := range made.NumField() {
		name := made.Field(i).Name
		name = string(name[0]-'a'+'A') + name[1:]
		action, other := elsewhere[name]
		if !other {
			action = "ec2:" + name
		}
		want = append(append(want, action), implied[name]...)
	}
	slices.Sort(want)
	shown := drivertest.ReadPage(t, "ec2").Words(t, "What the credentials must allow", regexp.MustCompile(`"([a-z0-9]+:[A-Z][A-Za-z]+)"[^:]`))
	if diff := cmp.Diff(slices.Compact(want), shown); diff != "" {
		t.Errorf("the calls (-) and the page's policy (+): %s", diff)
	}
}
