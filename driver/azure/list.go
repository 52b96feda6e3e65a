package azure

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List merges several of Azure's lists: virtual machines with their tags, the state of each, and the addresses of
// their interfaces. It leaves out only those of other regions in the group.
func (c *cloud) List(ctx context.Context, _ map[string]string) ([]driver.Instance, error) {
	vms, err := list[armcompute.VirtualMachine](ctx, c.api, "ListVMs")
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	states, err := list[armcompute.VirtualMachine](ctx, c.api, "ListVMStates")
	if err != nil {
		return nil, errs.Classify("list the states of instances", err)
	}
	addresses, err := c.addresses(ctx)
	if err != nil {
		return nil, errs.Classify("list the addresses of instances", err)
	}
	views := map[string]*armcompute.VirtualMachineInstanceView{}
	for _, s := range states {
		views[key(s.ID)] = kit.Value(s.Properties).InstanceView
	}
	var all []driver.Instance
	for _, vm := range vms {
		if !strings.EqualFold(kit.Value(vm.Location), c.config.Location) || vm.Properties == nil {
			continue
		}
		vm.Properties.InstanceView = views[key(vm.ID)]
		all = append(all, c.found(vm, addresses))
	}
	return all, nil
}

// Describe asks for one virtual machine, which includes its state, and for all addresses.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	doing := "describe instance " + id
	var vm armcompute.VirtualMachine
	if err := c.api.do(ctx, "GetVM", id, nil, &vm); err != nil {
		return driver.Instance{}, errs.Classify(doing, err)
	}
	addresses, err := c.addresses(ctx)
	if err != nil {
		return driver.Instance{}, errs.Classify(doing, err)
	}
	return c.found(&vm, addresses), nil
}

// found is an instance with its addresses, and whether it was taken back.
func (c *cloud) found(vm *armcompute.VirtualMachine, addresses map[string]driver.Addresses) driver.Instance {
	in := c.instanceOf(vm)
	in.Addresses.Private, in.Addresses.Public = addresses[key(vm.ID)].Private, addresses[key(vm.ID)].Public
	in.Reclaimed = c.takenBack(in)
	return in
}

// key is a resource id for comparison: Azure varies its capitals.
func key(id *string) string { return strings.ToLower(kit.Value(id)) }

// addresses are where instances can be reached, by resource id.
func (c *cloud) addresses(ctx context.Context) (map[string]driver.Addresses, error) {
	interfaces, err := list[attachment](ctx, c.api, "ListInterfaces")
	if err != nil {
		return nil, err
	}
	public := map[string]string{}
	if c.config.PublicAddress {
		found, err := list[attachment](ctx, c.api, "ListAddresses")
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			public[key(a.ID)] = kit.Value(a.Properties).IPAddress
		}
	}
	all := map[string]driver.Addresses{}
	for _, i := range interfaces {
		p := kit.Value(i.Properties)
		for _, a := range p.IPConfigurations {
			at := a.Properties
			all[key(kit.Value(p.VirtualMachine).ID)] = driver.Addresses{Private: at.PrivateIPAddress, Public: public[key(at.PublicIPAddress.ID)]}
		}
	}
	return all, nil
}

// instanceOf translates an instance, without its addresses.
func (c *cloud) instanceOf(vm *armcompute.VirtualMachine) driver.Instance {
	p := kit.Value(vm.Properties)
	view := kit.Value(p.InstanceView).Statuses
	power, _, _ := status(view, "PowerState/")
	in := driver.Instance{
		ID: kit.Value(vm.Name), Tags: converted(vm.Tags, kit.Value), ProviderType: string(kit.Value(kit.Value(p.HardwareProfile).VMSize)), Zone: c.config.Location, Market: drover.OnDemand,
		State: state(kit.Value(p.ProvisioningState), power), Created: drover.TimeOf(kit.Value(p.TimeCreated)),
		Addresses: driver.Addresses{User: kit.Value(kit.Value(p.OSProfile).AdminUsername)},
	}
	if len(vm.Zones) > 0 {
		in.Zone += "-" + kit.Value(vm.Zones[0])
	}
	if kit.Value(p.Priority) == armcompute.VirtualMachinePriorityTypesSpot {
		in.Market = drover.Spot
	}
	if in.State == driver.Stopped && kit.Value(p.ProvisioningState) == "Failed" {
		in.Failed = failure(in, view)
	}
	return in
}

// status is the status whose code begins so, such as PowerState/running, if there is one: the rest of the code, and
// what else it says.
func status(view []*armcompute.InstanceViewStatus, begins string) (rest, message string, ok bool) {
	for _, s := range view {
		if rest, ok := strings.CutPrefix(kit.Value(s.Code), begins); ok {
			return rest, kit.Value(s.Message), true
		}
	}
	return "", "", false
}

// state is an instance's state by its provisioning and power, which is empty while it has none. An instance that runs although its provisioning failed,
// perhaps because its image has no agent, is left to the boot probe.
func state(provisioning, power string) driver.State {
	switch {
	case provisioning == "Deleting":
		return driver.Stopping
	case power == "running":
		return driver.Running
	case power == "stopping", power == "deallocating":
		return driver.Stopping
	case power == "stopped", power == "deallocated", provisioning == "Failed" && power == "":
		return driver.Stopped
	}
	return driver.Pending
}

// failure is why an instance could not be made, by the code of its provisioning state:
// ProvisioningState/failed/AllocationFailed.
func failure(in driver.Instance, view []*armcompute.InstanceViewStatus) *drover.Error {
	doing := "create instance " + in.ID
	if code, message, ok := status(view, "ProvisioningState/failed"); ok {
		return errs.Error(doing, in.Market, kit.Answer{Code: strings.TrimPrefix(code, "/"), Message: message})
	}
	return drover.Errorf(drover.KindTransient, "%s: its provisioning failed, and Azure gave no reason", doing)
}

// takenBack reports whether a spot instance ends that Drover neither destroyed nor stopped.
func (c *cloud) takenBack(in driver.Instance) bool {
	return in.State == driver.Stopping && in.Market == drover.Spot && !c.destroyed.Has(in.ID) && in.Tags[driver.TagStopped] == ""
}

// SetTags replaces the tags, except the configured ones.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	update := armcompute.VirtualMachineUpdate{Tags: converted(kit.MergeTags(c.config.Tags, tags), to.Ptr)}
	return errs.Classify("tag instance "+id, c.api.do(ctx, "UpdateVM", id, update, nil))
}

// converted applies a function to the values of tags, which are pointers in the API.
func converted[S, T any](tags map[string]S, convert func(S) T) map[string]T {
	all := make(map[string]T, len(tags))
	for key, value := range tags {
		all[key] = convert(value)
	}
	return all
}
