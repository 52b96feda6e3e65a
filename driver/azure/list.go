package azure

import (
	"context"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime/datetime"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// List merges several of Azure's lists: virtual machines with their tags, the state of each, and the addresses of
// their interfaces. It leaves out only the group's instances in other regions.
func (c *cloud) List(ctx context.Context, _ map[string]string) ([]driver.Instance, error) {
	vms, err := list[virtualMachine](ctx, c.api, "ListVMs")
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	states, err := list[virtualMachine](ctx, c.api, "ListVMStates")
	if err != nil {
		return nil, errs.Classify("list the states of instances", err)
	}
	addresses, err := c.addresses(ctx)
	if err != nil {
		return nil, errs.Classify("list the addresses of instances", err)
	}
	views := map[string]virtualMachine{}
	for _, s := range states {
		views[key(s.ID)] = s
	}
	var all []driver.Instance
	for _, vm := range vms {
		if strings.EqualFold(vm.Location, c.config.Location) {
			vm.Properties.InstanceView = views[key(vm.ID)].Properties.InstanceView
			all = append(all, c.found(vm, addresses))
		}
	}
	return all, nil
}

// Describe reads one virtual machine, which includes its state, and all addresses.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	doing := "describe instance " + id
	vm, err := c.api.onVM(ctx, "GetVM", id, nil)
	if err != nil {
		return driver.Instance{}, errs.Classify(doing, err)
	}
	addresses, err := c.addresses(ctx)
	if err != nil {
		return driver.Instance{}, errs.Classify(doing, errs.Aside(err))
	}
	return c.found(vm, addresses), nil
}

// found returns an instance with its addresses and with whether Azure interrupted it.
func (c *cloud) found(vm virtualMachine, addresses map[string]driver.Addresses) driver.Instance {
	in := c.instanceOf(vm)
	in.Addresses.Private, in.Addresses.Public = addresses[key(vm.ID)].Private, addresses[key(vm.ID)].Public
	in.Reclaimed = c.takenBack(in)
	return in
}

// key normalizes a resource id for comparison: Azure varies its case.
func key(id string) string { return strings.ToLower(id) }

// addresses returns where instances can be reached, by resource id.
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

// virtualMachine is what the driver reads from a virtual machine.
type virtualMachine struct {
	ID, Name, Location string
	Zones              []string
	Tags               map[string]string
	Properties         struct {
		ProvisioningState, Priority string
		TimeCreated                 *datetime.RFC3339
		HardwareProfile             struct{ VMSize string }
		OSProfile                   struct{ AdminUsername string }
		InstanceView                struct {
			Statuses []struct{ Code, Message string }
		}
	}
}

// instanceOf translates an instance, without its addresses.
func (c *cloud) instanceOf(vm virtualMachine) driver.Instance {
	p := vm.Properties
	in := driver.Instance{
		ID: vm.Name, Tags: vm.Tags, ProviderType: p.HardwareProfile.VMSize, Zone: c.config.Location, Market: drover.OnDemand,
		State: vm.state(), Created: drover.TimeOf(time.Time(kit.Value(p.TimeCreated))),
		Addresses: driver.Addresses{User: p.OSProfile.AdminUsername},
	}
	if len(vm.Zones) > 0 {
		in.Zone += "-" + vm.Zones[0]
	}
	if p.Priority == "Spot" {
		in.Market = drover.Spot
	}
	if in.State == driver.Stopped && p.ProvisioningState == "Failed" && in.Tags[driver.TagStopped] == "" {
		in.Failed = vm.failure(in.Market)
	}
	return in
}

// status finds the status whose code begins with a text, such as PowerState/running. It returns the rest of the code,
// and the status's message.
func (vm virtualMachine) status(begins string) (rest, message string, ok bool) {
	for _, s := range vm.Properties.InstanceView.Statuses {
		if rest, ok := strings.CutPrefix(s.Code, begins); ok {
			return rest, s.Message, true
		}
	}
	return "", "", false
}

// state derives an instance's state from its provisioning state and its power state, which may be empty. If an instance
// runs although its provisioning failed, perhaps because its image has no agent, the boot probe decides. An instance
// without any status, because the list of states lacks it, may run, too: its last change may be what failed.
func (vm virtualMachine) state() driver.State {
	provisioning := vm.Properties.ProvisioningState
	power, _, _ := vm.status("PowerState/")
	switch {
	case provisioning == "Deleting":
		return driver.Stopping
	case power == "running":
		return driver.Running
	case power == "stopping", power == "deallocating":
		return driver.Stopping
	case power == "stopped", power == "deallocated", provisioning == "Failed" && power == "" && len(vm.Properties.InstanceView.Statuses) > 0:
		return driver.Stopped
	}
	return driver.Pending
}

// failure returns why an instance could not be created, from the code of its provisioning state, such as
// ProvisioningState/failed/AllocationFailed.
func (vm virtualMachine) failure(m drover.Market) *drover.Error {
	doing := "create instance " + vm.Name
	if code, message, ok := vm.status("ProvisioningState/failed"); ok {
		return errs.CreateError(doing, m, kit.Answer{Code: strings.TrimPrefix(code, "/"), Message: message})
	}
	return drover.Errorf(drover.KindTransient, "%s: its provisioning failed, and Azure gave no reason", doing)
}

// takenBack reports whether an ending instance is a spot instance that Drover neither destroyed nor stopped.
func (c *cloud) takenBack(in driver.Instance) bool {
	return in.State == driver.Stopping && in.Market == drover.Spot && !c.destroyed.Has(in.ID) && in.Tags[driver.TagStopped] == ""
}

// SetTags replaces the tags, except the configured ones.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	update := object{"tags": kit.MergeTags(c.config.Tags, tags)}
	return errs.Classify("tag instance "+id, c.api.do(ctx, "UpdateVM", id, update, nil)) // an accepted one may have no answer
}
