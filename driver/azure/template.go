package azure

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
)

// readTemplate reads a raw template, in the words of the API's VirtualMachine. What Drover gives each instance it must not say.
func readTemplate(raw string) (*armcompute.VirtualMachine, error) {
	vm := &armcompute.VirtualMachine{}
	if raw != "" {
		if err := json.Unmarshal([]byte(raw), vm); err != nil {
			return nil, badTemplate("%v", err)
		}
		if key, err := unread(raw, vm); key != "" || err != nil {
			return nil, badTemplate("%q is no key of a virtual machine", key)
		}
	}
	if vm.Properties == nil {
		vm.Properties = &armcompute.VirtualMachineProperties{}
	}
	p := vm.Properties
	if vm.Location != nil || vm.Zones != nil || vm.Tags != nil || p.StorageProfile != nil || p.OSProfile != nil || p.NetworkProfile != nil ||
		p.Priority != nil || p.EvictionPolicy != nil || p.HardwareProfile != nil && p.HardwareProfile.VMSize != nil {
		return nil, drover.Errorf(drover.KindInvalid, "the template says location, zones, tags, vmSize, priority, or the profile of storage, system or network, which Drover gives for each instance").
			WithHint("use the keys of the cloud's configuration for them")
	}
	return vm, nil
}

func badTemplate(format string, args ...any) error {
	return drover.Errorf(drover.KindInvalid, "read the template: "+format, args...).
		WithHint("it is JSON, with the keys of a virtual machine in the Azure Compute API, such as {\"properties\": {\"licenseType\": \"RHEL_BYOS\"}}")
}

// unread is a key of the raw template, which is JSON, that the virtual machine read from it has not: the API would pass over it.
func unread(raw string, vm *armcompute.VirtualMachine) (key string, err error) {
	var wrote, read any
	text, err := json.Marshal(vm)
	err = errors.Join(err, json.Unmarshal([]byte(raw), &wrote), json.Unmarshal(text, &read))
	return surplus(wrote, read), err
}

// surplus is the path of a key that one value has and the other has not.
func surplus(one, other any) string {
	switch one := one.(type) {
	case map[string]any:
		known, _ := other.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(one)) {
			has, ok := known[key]
			if !ok && one[key] != nil {
				return key
			}
			if rest := surplus(one[key], has); rest != "" {
				return strings.Join([]string{key, rest}, ".")
			}
		}
	case []any:
		known, _ := other.([]any)
		for i := range min(len(one), len(known)) {
			if rest := surplus(one[i], known[i]); rest != "" {
				return rest
			}
		}
	}
	return ""
}
