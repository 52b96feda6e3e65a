package azure

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/driver/drivertest"
)

// actions are the permissions that each call needs, without the prefix Microsoft. A call that creates or deletes a
// virtual machine also creates or deletes its parts, and uses the resources that they refer to.
var actions = map[string][]string{
	"CreateVM": {
		"Compute/virtualMachines/write", "Compute/disks/read", "Compute/disks/write", "Compute/diskEncryptionSets/read", "Compute/images/read",
		"Compute/galleries/images/read", "Compute/galleries/images/versions/read", "Network/networkInterfaces/read", "Network/networkInterfaces/write",
		"Network/networkInterfaces/join/action", "Network/publicIPAddresses/read", "Network/publicIPAddresses/write", "Network/publicIPAddresses/join/action",
		"Network/virtualNetworks/subnets/read", "Network/virtualNetworks/subnets/join/action", "Network/networkSecurityGroups/join/action",
		"ManagedIdentity/userAssignedIdentities/assign/action",
	},
	"DeleteVM": {
		"Compute/virtualMachines/delete", "Compute/disks/delete", "Network/networkInterfaces/delete", "Network/publicIPAddresses/delete",
	},
	"UpdateVM": {"Compute/virtualMachines/write"}, "StartVM": {"Compute/virtualMachines/start/action"}, "DeallocateVM": {"Compute/virtualMachines/deallocate/action"},
	"GetVM": {"Compute/virtualMachines/read"}, "ListVMs": {"Compute/virtualMachines/read"}, "ListVMStates": {"Compute/virtualMachines/read"},
	"ListInterfaces": {"Network/networkInterfaces/read"}, "DeleteInterface": {"Network/networkInterfaces/delete"},
	"ListAddresses": {"Network/publicIPAddresses/read"}, "DeleteAddress": {"Network/publicIPAddresses/delete"},
	"ListDisks": {"Compute/disks/read"}, "DeleteDisk": {"Compute/disks/delete"}, "ListImages": {"Compute/images/read"},
	"ListTypes": {"Compute/skus/read"}, "ListQuotas": {"Compute/locations/usages/read"},
	"Query": {"ResourceGraph/resources/read"},
}

func TestRolesMatchCalls(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(calls)), slices.Sorted(maps.Keys(actions))); diff != "" {
		t.Errorf("the driver's calls (-) and those in actions (+): %s", diff)
	}
	var want []string
	for _, needs := range actions {
		want = append(want, needs...)
	}
	drivertest.ShowsPermissions(t, "azure", `"Microsoft\.([A-Za-z/]+)"`, want)
}
