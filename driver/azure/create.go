package azure

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver"
)

// defaultVolume is the type of disk that is made if none is configured: the cheapest that every type of instance takes and that is not for
// archives.
const defaultVolume = "StandardSSD_LRS"

// tagMade is on interfaces and addresses, of which Azure does not say when they were made: the second, since 1970.
const tagMade = "drover-made"

// instanceName is what a virtual machine that runs Linux may be called.
var instanceName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?$`)

// Create asks for an instance of the first candidate, and of the next ones as long as Azure says at once that there is none of it.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	if err := c.check(r); err != nil {
		return driver.Instance{}, driver.Candidate{}, classify(doing, "", err)
	}
	var refused []*drover.Error
	for _, candidate := range r.Candidates {
		err := c.launch(ctx, r, candidate)
		switch {
		case err == nil:
			return c.instance(r, candidate), candidate, nil
		case kindOf(err) == drover.KindConflict:
			return c.recall(ctx, r)
		}
		err = classify(doing, candidate.Market, err)
		var e *drover.Error
		if !errors.As(err, &e) || e.Kind != drover.KindCapacity && e.Kind != drover.KindQuota && e.Kind != drover.KindUnsupported {
			return driver.Instance{}, driver.Candidate{}, err
		}
		refused = append(refused, drover.AsError(err, e.Kind))
	}
	return driver.Instance{}, driver.Candidate{}, driver.Worst(refused)
}

// check refuses what could never become an instance.
func (c *cloud) check(r driver.CreateRequest) error {
	switch {
	case !instanceName.MatchString(r.Name):
		return drover.Errorf(drover.KindInvalid, "a name has letters, digits and dashes, at most 64")
	case len(r.Candidates) == 0:
		return drover.Errorf(drover.KindInvalid, "no candidates")
	case len(driver.UserData(r).Reveal()) > maxCustomData:
		return drover.Errorf(drover.KindInvalid, "the user data has more than %d bytes", maxCustomData)
	}
	for _, candidate := range r.Candidates {
		switch {
		case candidate.Image == "":
			return drover.Errorf(drover.KindInvalid, "no image is configured for %s", cmp.Or(string(candidate.Arch), candidate.ProviderType)).
				WithHint("write image: in the cloud's configuration, such as Debian:debian-12:12-gen2:latest")
		case candidate.Zone != c.config.Location && number(c.config.Location, candidate.Zone) == "":
			return drover.Errorf(drover.KindInvalid, "there is no zone %s in %s", candidate.Zone, c.config.Location)
		}
	}
	return nil
}

// launch asks for one candidate.
func (c *cloud) launch(ctx context.Context, r driver.CreateRequest, candidate driver.Candidate) error {
	vm, err := c.virtualMachine(r, candidate)
	if err != nil {
		return err
	}
	if err := c.allowed(ctx, candidate); err != nil {
		return err
	}
	return c.api.createVM(ctx, r.Name, *vm)
}

// virtualMachine is what a user's raw template says, and over it what Drover has to say.
func (c *cloud) virtualMachine(r driver.CreateRequest, candidate driver.Candidate) (*armcompute.VirtualMachine, error) {
	vm, err := readTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	vm.Location, vm.Tags = &c.config.Location, pointers(c.tagsOf(r.Tags))
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

// gib is a size in whole GiB, nil for none: then it is the image's.
func gib(size drover.Bytes) *int32 {
	if size <= 0 {
		return nil
	}
	return to.Ptr(int32(size.WholeGiB()))
}

// system is who may log in, and what cloud-init is given.
func (c *cloud) system(r driver.CreateRequest) *armcompute.OSProfile {
	linux := &armcompute.LinuxConfiguration{DisablePasswordAuthentication: to.Ptr(true)}
	if key := strings.TrimSpace(r.PublicKey); key != "" {
		linux.SSH = &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{
			{KeyData: &key, Path: to.Ptr("/home/" + c.config.AdminUser + "/.ssh/authorized_keys")},
		}}
	}
	return &armcompute.OSProfile{
		ComputerName: &r.Name, AdminUsername: &c.config.AdminUser, LinuxConfiguration: linux,
		CustomData: to.Ptr(base64.StdEncoding.EncodeToString([]byte(driver.UserData(r).Reveal()))),
	}
}

// network has the interface, and the public address, made in the same call and go with the instance.
func (c *cloud) network(r driver.CreateRequest) *armcompute.NetworkProfile {
	tags := c.tagsOf(r.Tags)
	tags[tagMade] = seconds(time.Now())
	address := &armcompute.VirtualMachineNetworkInterfaceIPConfigurationProperties{Primary: to.Ptr(true), Subnet: &armcompute.SubResource{ID: to.Ptr(c.config.subnetID())}}
	if c.config.PublicAddress {
		address.PublicIPAddressConfiguration = &armcompute.VirtualMachinePublicIPAddressConfiguration{
			Name: &r.Name, Tags: pointers(tags), SKU: &armcompute.PublicIPAddressSKU{Name: to.Ptr(armcompute.PublicIPAddressSKUNameStandard)},
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
			{Name: &r.Name, Tags: pointers(tags), Properties: properties},
		},
	}
}

// tagsOf are the tags of what is made for an instance: its own, and those that the configuration gives everything.
func (c *cloud) tagsOf(own map[string]string) map[string]string {
	return driver.Together(c.config.Tags, own)
}

// instance is what is known of an instance that was asked for.
func (c *cloud) instance(r driver.CreateRequest, taken driver.Candidate) driver.Instance {
	return driver.Instance{
		ID: r.Name, Tags: c.tagsOf(r.Tags), ProviderType: taken.ProviderType, Zone: taken.Zone, Market: taken.Market, State: driver.Pending,
		Addresses: driver.Addresses{User: c.config.AdminUser},
	}
}

// recall finds the instance that has the name already.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	vm, err := c.api.getVM(ctx, r.Name)
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, classify(doing, "", err)
	}
	in := c.instanceOf(vm)
	if !in.Bears(map[string]string{driver.TagFleet: r.Tags[driver.TagFleet], driver.TagName: r.Name}) {
		return driver.Instance{}, driver.Candidate{}, drover.Errorf(drover.KindInvalid, "%s: resource group %s has a virtual machine of that name, which is not it", doing, c.config.ResourceGroup)
	}
	return in, driver.Candidate{ProviderType: in.ProviderType, Zone: in.Zone, Market: in.Market}, nil
}
