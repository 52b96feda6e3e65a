package azure

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// defaultVolume is the disk type if none is configured: the cheapest one that every instance type accepts and that is
// not meant for archives.
const defaultVolume = "StandardSSD_LRS"

// tagMade is the tag with an interface's or address's creation time in seconds since 1970. Azure does not report it.
const tagMade = "drover-made"

// longestName is Azure's limit for the name of a Linux virtual machine.
const longestName = 64

// demands are what Azure requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "Debian:debian-12:12-gen2:latest", UserData: maxUserData}

// Create requests an instance of the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.launch)
}

// launch creates the instance, or finds the existing one with the name.
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
	_, err = c.api.onVM(ctx, "CreateVM", r.Name, vm)
	if errs.KindOf(err) == drover.KindConflict {
		return c.recall(ctx, r)
	}
	return driver.Instance{
		ID: r.Name, Tags: kit.MergeTags(c.config.Tags, r.Tags), ProviderType: first.ProviderType, Zone: first.Zone, Market: first.Market,
		State: driver.Pending, Addresses: driver.Addresses{User: c.config.AdminUser},
	}, err
}

// object is JSON, with the keys of the Azure Compute API.
type object = map[string]any

// virtualMachine returns the user's raw template with Drover's values on top.
func (c *cloud) virtualMachine(r driver.CreateRequest, candidate driver.Candidate) (object, error) {
	vm, err := readTemplate(r.Template)
	if err != nil {
		return nil, err
	}
	vm["location"], vm["tags"] = c.config.Location, kit.MergeTags(c.config.Tags, r.Tags)
	if n := number(c.config.Location, candidate.Zone); n != "" {
		vm["zones"] = []string{n}
	}
	if c.config.Identity != "" {
		vm["identity"] = object{"type": "UserAssigned", "userAssignedIdentities": object{c.config.Identity: object{}}}
	}
	p := within(vm, "properties")
	within(p, "hardwareProfile")["vmSize"] = candidate.ProviderType
	p["storageProfile"], p["osProfile"], p["networkProfile"] = c.storage(r, candidate), c.system(r), c.network(r)
	if candidate.Market == drover.Spot {
		p["priority"], p["evictionPolicy"] = "Spot", "Delete"
		if p["billingProfile"] == nil {
			p["billingProfile"] = object{"maxPrice": -1} // up to the on-demand price
		}
	}
	return vm, nil
}

// within returns the object under a key, which it adds if there is none.
func within(o object, key string) object {
	if o[key] == nil {
		o[key] = object{}
	}
	return o[key].(object)
}

func (c *cloud) storage(r driver.CreateRequest, candidate driver.Candidate) object {
	system := object{"createOption": "FromImage", "deleteOption": "Delete", "caching": "ReadWrite", "managedDisk": c.config.Volume.disk()}
	if size := r.Disk.WholeGiB(); size > 0 { // otherwise, the image's size
		system["diskSizeGB"] = size
	}
	s, data := object{"imageReference": imageOf(candidate.Image), "osDisk": system}, []object{}
	for i, v := range c.config.Volumes {
		data = append(data, object{"lun": i, "createOption": "Empty", "deleteOption": "Delete", "diskSizeGB": v.Size.WholeGiB(), "managedDisk": v.disk()})
		s["dataDisks"] = data
	}
	return s
}

func (v volume) disk() object {
	d := object{"storageAccountType": cmp.Or(v.Type, defaultVolume)}
	if v.Encryption != "" {
		d["diskEncryptionSet"] = object{"id": v.Encryption}
	}
	return d
}

// system returns the login user, its key, and the text for cloud-init.
func (c *cloud) system(r driver.CreateRequest) object {
	linux := object{"disablePasswordAuthentication": true}
	if key := strings.TrimSpace(r.PublicKey); key != "" {
		linux["ssh"] = object{"publicKeys": []object{{"keyData": key, "path": "/home/" + c.config.AdminUser + "/.ssh/authorized_keys"}}}
	}
	return object{
		"computerName": r.Name, "adminUsername": c.config.AdminUser, "linuxConfiguration": linux,
		"customData": []byte(kit.UserData(r).Reveal()), // JSON encodes it in base64
	}
}

// network requests the interface and the public address in the same call. They are deleted with the instance.
func (c *cloud) network(r driver.CreateRequest) object {
	tags := kit.MergeTags(c.config.Tags, r.Tags, map[string]string{tagMade: strconv.FormatInt(time.Now().Unix(), 10)})
	address := object{"primary": true, "subnet": object{"id": c.config.subnetID()}}
	if c.config.PublicAddress {
		address["publicIPAddressConfiguration"] = object{
			"name": r.Name, "tags": tags, "sku": object{"name": "Standard"},
			"properties": object{"deleteOption": "Delete", "publicIPAllocationMethod": "Static"},
		}
	}
	properties := object{
		"primary": true, "deleteOption": "Delete", "enableAcceleratedNetworking": c.config.Accelerated,
		"ipConfigurations": []object{{"name": r.Name, "properties": address}},
	}
	if c.config.SecurityGroup != "" {
		properties["networkSecurityGroup"] = object{"id": c.config.resource(c.config.ResourceGroup, "Microsoft.Network/networkSecurityGroups", c.config.SecurityGroup)}
	}
	return object{"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": []object{{"name": r.Name, "tags": tags, "properties": properties}}}
}

// recall finds the existing instance with the name.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	vm, err := c.api.onVM(ctx, "GetVM", r.Name, nil)
	if errs.KindOf(err) == drover.KindNotFound {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "it existed a moment ago but is no longer visible")
	} else if err != nil {
		return driver.Instance{}, err
	}
	in := c.instanceOf(vm)
	if !in.Bears(map[string]string{driver.TagFleet: r.Tags[driver.TagFleet], driver.TagName: r.Tags[driver.TagName]}) {
		return in, drover.Errorf(drover.KindInvalid, "resource group %s has another virtual machine with this name", c.config.ResourceGroup)
	}
	return in, nil
}

// template has the keys of the API's VirtualMachine, as of vmVersion.
var template = kit.Template{
	Hint: `write JSON with the keys of a virtual machine in the Azure Compute API; for example, {"properties": {"licenseType": "RHEL_BYOS"}}`,
	Given: []string{"location", "zones", "tags", "properties.storageProfile", "properties.osProfile", "properties.networkProfile", "properties.priority",
		"properties.evictionPolicy", "properties.hardwareProfile.vmSize"},
	Use: "use the keys in the cloud's configuration instead",
	Keys: `{"extendedLocation": {"name": "", "type": ""}, "identity": {"type": "", "userAssignedIdentities": {"*": {}}},
		"placement": {"excludeZones": [""], "includeZones": [""], "zonePlacementPolicy": ""}, "plan": {"name": "", "product": "", "promotionCode": "", "publisher": ""},
		"properties": {"additionalCapabilities": {"enableFips1403Encryption": true, "hibernationEnabled": true, "ultraSSDEnabled": true}, "availabilitySet": {"id": ""},
		"applicationProfile": {"galleryApplications": [{"packageReferenceId": "", "configurationReference": "", "enableAutomaticUpgrade": true, "order": 0, "tags": "",
			"treatFailureAsDeploymentFailure": true}]}, "billingProfile": {"maxPrice": 0}, "diagnosticsProfile": {"bootDiagnostics": {"enabled": true, "storageUri": ""}},
		"capacityReservation": {"capacityReservationGroup": {"id": ""}, "disableCapacityReservationAssignment": true}, "extensionsTimeBudget": "",
		"hardwareProfile": {"processorMode": "", "vmSizeProperties": {"vCPUsAvailable": 0, "vCPUsPerCore": 0}}, "host": {"id": ""}, "hostGroup": {"id": ""},
		"interconnectBlockProfile": {"interconnectBlock": {"id": ""}}, "licenseType": "", "platformFaultDomain": 0, "proximityPlacementGroup": {"id": ""},
		"resiliencyProfile": {"zoneMovement": {"isEnabled": true}}, "userData": "", "virtualMachineScaleSet": {"id": ""}, "scheduledEventsPolicy": {
			"allInstancesDown": {"automaticallyApprove": true}, "userInitiatedReboot": {"automaticallyApprove": true}, "userInitiatedRedeploy": {"automaticallyApprove": true},
			"scheduledEventsAdditionalPublishingTargets": {"eventGridAndResourceGraph": {"enable": true, "scheduledEventsApiVersion": ""}}},
		"scheduledEventsProfile": {"osImageNotificationProfile": {"enable": true, "notBeforeTimeout": ""}, "terminateNotificationProfile": {"enable": true, "notBeforeTimeout": ""}},
		"securityProfile": {"encryptionAtHost": true, "encryptionIdentity": {"userAssignedIdentityResourceId": ""}, "securityType": "",
			"proxyAgentSettings": {"addProxyAgentExtension": true, "enabled": true, "imds": {"inVMAccessControlProfileReferenceId": "", "mode": "", "useLocalFileRules": true},
			"keyIncarnationId": 0, "mode": "", "wireServer": {"inVMAccessControlProfileReferenceId": "", "mode": "", "useLocalFileRules": true}},
			"uefiSettings": {"secureBootEnabled": true, "vTpmEnabled": true}}}}`,
}

// readTemplate reads a raw template.
func readTemplate(raw string) (vm object, err error) {
	if err = template.Read(raw, &vm); vm == nil {
		vm = object{}
	}
	return vm, err
}
