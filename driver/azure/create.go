package azure

import (
	"cmp"
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// defaultVolume is the disk type if none is configured: the cheapest that every instance type accepts and that is not
// for archives.
const defaultVolume = "StandardSSD_LRS"

// tagMade has the time of creation of interfaces and addresses, which Azure does not report, in seconds since 1970.
const tagMade = "drover-made"

// longestName is the limit of a Linux virtual machine's name.
const longestName = 64

// demands are what Azure requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "Debian:debian-12:12-gen2:latest", UserData: maxUserData}

// Create requests an instance of the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.launch)
}

// launch makes the instance, or finds the existing one of the name.
func (c *cloud) launch(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	first := r.Candidates[0]
	if first.Zone != c.config.Location && number(c.config.Location, first.Zone) == "" {
		return driver.Instance{}, drover.Errorf(drover.KindInvalid, "there is no zone %s in %s", first.Zone, c.config.Location)
	}
	vm, err := c.virtualMachine(r, first)
	if err == nil {
		err = c.allowed(ctx, first)
	}
	if err != nil {
		return driver.Instance{}, err
	}
	err = c.api.do(ctx, "CreateVM", r.Name, vm, nil)
	if errs.KindOf(err) == drover.KindConflict {
		return c.recall(ctx, r)
	}
	vm.Name = &r.Name
	return c.instanceOf(vm), err
}

// virtualMachine is the user's raw template with Drover's values on top.
func (c *cloud) virtualMachine(r driver.CreateRequest, candidate driver.Candidate) (*armcompute.VirtualMachine, error) {
	vm, err := readTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	vm.Location, vm.Tags = &c.config.Location, converted(kit.MergeTags(c.config.Tags, r.Tags), to.Ptr)
	if n := number(c.config.Location, candidate.Zone); n != "" {
		vm.Zones = []*string{&n}
	}
	if c.config.Identity != "" {
		vm.Identity = &armcompute.VirtualMachineIdentity{
			Type:                   to.Ptr(armcompute.ResourceIdentityTypeUserAssigned),
			UserAssignedIdentities: map[string]*armcompute.UserAssignedIdentitiesValue{c.config.Identity: {}},
		}
	}
	p := vm.Properties
	if p.HardwareProfile == nil {
		p.HardwareProfile = &armcompute.HardwareProfile{}
	}
	p.HardwareProfile.VMSize = to.Ptr(armcompute.VirtualMachineSizeTypes(candidate.ProviderType))
	p.StorageProfile = c.storage(r, candidate)
	p.OSProfile = c.system(r)
	p.NetworkProfile = c.network(r)
	if candidate.Market == drover.Spot {
		p.Priority, p.EvictionPolicy = to.Ptr(armcompute.VirtualMachinePriorityTypesSpot), to.Ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
		p.BillingProfile = &armcompute.BillingProfile{MaxPrice: to.Ptr(-1.0)} // up to the price on demand
	}
	return vm, nil
}

func (c *cloud) storage(r driver.CreateRequest, candidate driver.Candidate) *armcompute.StorageProfile {
	s := &armcompute.StorageProfile{
		ImageReference: imageOf(candidate.Image),
		OSDisk: &armcompute.OSDisk{
			CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete),
			Caching: to.Ptr(armcompute.CachingTypesReadWrite), DiskSizeGB: gib(r.Disk), ManagedDisk: c.config.Volume.disk(),
		},
	}
	for i, v := range c.config.Volumes {
		s.DataDisks = append(s.DataDisks, &armcompute.DataDisk{
			Lun: to.Ptr(int32(i)), CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesEmpty), DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete),
			DiskSizeGB: gib(v.Size), ManagedDisk: v.disk(),
		})
	}
	return s
}

func (v volume) disk() *armcompute.ManagedDiskParameters {
	d := &armcompute.ManagedDiskParameters{StorageAccountType: to.Ptr(armcompute.StorageAccountTypes(cmp.Or(v.Type, defaultVolume)))}
	if v.Encryption != "" {
		d.DiskEncryptionSet = &armcompute.DiskEncryptionSetParameters{ID: to.Ptr(v.Encryption)}
	}
	return d
}

// gib is a size in whole GiB; nil for none, which means the image's.
func gib(size drover.Bytes) *int32 { return kit.Given(int32(size.WholeGiB())) }

// system is the login user, its key, and the text for cloud-init.
func (c *cloud) system(r driver.CreateRequest) *armcompute.OSProfile {
	linux := &armcompute.LinuxConfiguration{DisablePasswordAuthentication: to.Ptr(true)}
	if key := strings.TrimSpace(r.PublicKey); key != "" {
		linux.SSH = &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{
			{KeyData: &key, Path: to.Ptr("/home/" + c.config.AdminUser + "/.ssh/authorized_keys")},
		}}
	}
	return &armcompute.OSProfile{
		ComputerName: &r.Name, AdminUsername: &c.config.AdminUser, LinuxConfiguration: linux,
		CustomData: to.Ptr(base64.StdEncoding.EncodeToString([]byte(kit.UserData(r).Reveal()))),
	}
}

// network makes the interface and the public address in the same call, to be deleted with the instance.
func (c *cloud) network(r driver.CreateRequest) *armcompute.NetworkProfile {
	tags := converted(kit.MergeTags(c.config.Tags, r.Tags, map[string]string{tagMade: seconds(time.Now())}), to.Ptr)
	address := &armcompute.VirtualMachineNetworkInterfaceIPConfigurationProperties{Primary: to.Ptr(true), Subnet: &armcompute.SubResource{ID: to.Ptr(c.config.subnetID())}}
	if c.config.PublicAddress {
		address.PublicIPAddressConfiguration = &armcompute.VirtualMachinePublicIPAddressConfiguration{
			Name: &r.Name, Tags: tags, SKU: &armcompute.PublicIPAddressSKU{Name: to.Ptr(armcompute.PublicIPAddressSKUNameStandard)},
			Properties: &armcompute.VirtualMachinePublicIPAddressConfigurationProperties{
				DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete), PublicIPAllocationMethod: to.Ptr(armcompute.PublicIPAllocationMethodStatic),
			},
		}
	}
	properties := &armcompute.VirtualMachineNetworkInterfaceConfigurationProperties{
		Primary: to.Ptr(true), DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete), EnableAcceleratedNetworking: &c.config.Accelerated,
		IPConfigurations: []*armcompute.VirtualMachineNetworkInterfaceIPConfiguration{{Name: &r.Name, Properties: address}},
	}
	if c.config.SecurityGroup != "" {
		id := c.config.resource(c.config.ResourceGroup, "Microsoft.Network/networkSecurityGroups", c.config.SecurityGroup)
		properties.NetworkSecurityGroup = &armcompute.SubResource{ID: &id}
	}
	return &armcompute.NetworkProfile{
		NetworkAPIVersion: to.Ptr(armcompute.NetworkAPIVersionTwoThousandTwentyTwo1101),
		NetworkInterfaceConfigurations: []*armcompute.VirtualMachineNetworkInterfaceConfiguration{
			{Name: &r.Name, Tags: tags, Properties: properties},
		},
	}
}

// recall finds the existing instance of the name.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	var vm armcompute.VirtualMachine
	if err := c.api.do(ctx, "GetVM", r.Name, nil, &vm); err != nil {
		return driver.Instance{}, err
	}
	in := c.instanceOf(&vm)
	if !in.Bears(map[string]string{driver.TagFleet: r.Tags[driver.TagFleet], driver.TagName: r.Tags[driver.TagName]}) {
		return in, drover.Errorf(drover.KindInvalid, "resource group %s has another virtual machine with this name", c.config.ResourceGroup)
	}
	return in, nil
}

// template is in the words of the API's VirtualMachine.
var template = kit.Template{
	Hint: `write JSON with the keys of a virtual machine in the Azure Compute API; for example, {"properties": {"licenseType": "RHEL_BYOS"}}`,
	Given: []string{"location", "zones", "tags", "properties.storageProfile", "properties.osProfile", "properties.networkProfile", "properties.priority",
		"properties.evictionPolicy", "properties.hardwareProfile.vmSize"},
	Use: "use the keys in the cloud's configuration for them",
}

// readTemplate reads a raw template.
func readTemplate(raw string) (*armcompute.VirtualMachine, error) {
	vm := &armcompute.VirtualMachine{}
	err := template.Read(raw, vm)
	if vm.Properties == nil {
		vm.Properties = &armcompute.VirtualMachineProperties{}
	}
	return vm, err
}
