package ec2

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// maxOverrides is how many candidates one call accepts: see "Fleet quotas" in Amazon's guide to EC2.
const maxOverrides = 300

// nameTag is the tag that the AWS tools show as an instance's name.
const nameTag = "Name"

// defaultVolume is the volume type if none is configured: the cheapest one of its speed.
const defaultVolume = "gp3"

// longestName is well within the limit for a tag.
const longestName = 128

// demands are what EC2 requires of every create call.
var demands = kit.Demands{
	Longest: longestName, Image: "ami-0123456789abcdef0 or ssm:/aws/service/debian/release/12/latest/amd64", UserData: maxUserData,
}

// Create creates an instance by an instant fleet from the candidates of the first market and, if none of these is
// available, from those of the next.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	doing := "create instance " + r.Name
	s, err := c.prepare(ctx, r)
	if err != nil {
		return driver.Instance{}, driver.Candidate{}, errs.Classify(doing, err)
	}
	var refused []*drover.Error
	for i, group := range byMarket(r.Candidates) {
		in, err := c.launch(ctx, s, i, group)
		if err == nil {
			return in, in.Candidate(), nil
		}
		err = errs.ClassifyIn(doing, group[0].Market, err)
		if !kit.TryNext(err) {
			return driver.Instance{}, driver.Candidate{}, err
		}
		refused = append(refused, drover.AsError(err, drover.KindTransient))
	}
	return driver.Instance{}, driver.Candidate{}, kit.MostSevere(refused)
}

// byMarket splits the candidates where the market changes, since a fleet of one instance has one market.
func byMarket(all []driver.Candidate) (groups [][]driver.Candidate) {
	for i, candidate := range all {
		if i == 0 || candidate.Market != all[i-1].Market {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], candidate)
	}
	return groups
}

// supply is what all calls for one instance have in common.
type supply struct {
	driver.CreateRequest
	template string
	userData string
	tags     map[string]string
	subnets  []subnet
	images   map[string]image
}

func (c *cloud) prepare(ctx context.Context, r driver.CreateRequest) (s supply, err error) {
	if err := kit.CheckRequest(r, demands); err != nil {
		return s, err
	}
	s = supply{
		CreateRequest: r, images: map[string]image{}, userData: base64.StdEncoding.EncodeToString([]byte(kit.UserData(r).Reveal())),
		tags: kit.MergeTags(c.config.Tags, map[string]string{nameTag: r.Name}, r.Tags),
	}
	for _, candidate := range r.Candidates {
		if s.images[candidate.Image], err = c.image(ctx, candidate.Image); err != nil {
			return s, err
		}
	}
	if s.subnets, err = c.subnets.Get(ctx); err != nil {
		return s, err
	}
	s.template, err = c.template(ctx, r)
	return s, err
}

// launch makes one call for the instance; turn is the call's number.
func (c *cloud) launch(ctx context.Context, s supply, turn int, candidates []driver.Candidate) (in driver.Instance, err error) {
	overrides, err := c.overrides(s, candidates)
	if err != nil {
		return in, err
	}
	var out struct {
		Instances []fleetItem `xml:"fleetInstanceSet>item"`
		Errors    []fleetItem `xml:"errorSet>item"`
	}
	token := c.token(s.Name, turn)
	err = c.api.do(ctx, "CreateFleet", c.fleetRequest(s, token, candidates[0].Market, overrides), &out)
	switch errs.KindOf(err) {
	case drover.KindConflict:
		return c.recall(ctx, s.CreateRequest)
	case drover.KindNotFound:
		c.made.Forget()
		return in, drover.Errorf(drover.KindTransient, "the launch template is not visible yet: %v", err)
	}
	if err != nil {
		return in, err
	}
	for _, made := range out.Instances {
		if len(made.IDs) > 0 {
			return s.instance(made, candidates[0].Market), nil
		}
	}
	return in, c.refused(token, candidates[0].Market, out.Errors)
}

// refused returns why a fleet created no instance. If the same request may succeed later, it gets another token.
func (c *cloud) refused(token string, m drover.Market, said []fleetItem) *drover.Error {
	err := refusals(m, said)
	if err.Kind == drover.KindNotFound {
		err.Kind = drover.KindInvalid
		if c.config.KeyPair == "" { // somebody deleted the fleet's, or it is not visible yet
			c.made.Forget()
			err.Kind = drover.KindTransient
		}
	}
	if len(said) > 0 && (err.Kind == drover.KindTransient || err.Kind == drover.KindRateLimit) {
		c.spent.Add(token)
	}
	return err
}

// fleetItem is what the driver reads about an instance that a fleet created, or about why it did not create one.
type fleetItem struct {
	IDs    []string `xml:"instanceIds>item"`
	Type   string   `xml:"instanceType"`
	Zone   string   `xml:"availabilityZone"`
	Subnet string   `xml:"subnetId"`

	AskedType   string `xml:"launchTemplateAndOverrides>overrides>instanceType"`
	AskedZone   string `xml:"launchTemplateAndOverrides>overrides>availabilityZone"`
	AskedSubnet string `xml:"launchTemplateAndOverrides>overrides>subnetId"`

	Code    string `xml:"errorCode"`
	Message string `xml:"errorMessage"`
}

// fleetRequest requests an instant fleet of one instance.
func (c *cloud) fleetRequest(s supply, token string, m drover.Market, overrides []params) params {
	tags := tagsOf(s.tags)
	in := params{
		"Type":        "instant",
		"ClientToken": token,
		"LaunchTemplateConfigs": []params{{
			"LaunchTemplateSpecification": params{"LaunchTemplateName": s.template, "Version": "1", "LaunchTemplateSpecificationUserData": s.userData},
			"Overrides":                   overrides,
		}},
		"TargetCapacitySpecification": params{"TotalTargetCapacity": 1, "DefaultTargetCapacityType": strings.ReplaceAll(string(m), "_", "-")},
		"TagSpecifications":           []params{{"ResourceType": "instance", "Tags": tags}, {"ResourceType": "volume", "Tags": tags}},
	}
	if m == drover.Spot {
		in["SpotOptions"] = params{"AllocationStrategy": c.config.SpotBy, "InstanceInterruptionBehavior": "terminate"}
	} else {
		in["OnDemandOptions"] = params{"AllocationStrategy": "prioritized"}
	}
	return in
}

// token is the client token of a call, at most 64 characters. Equal requests have equal tokens, unless EC2 has answered
// that it created nothing and that a repeated call may succeed: with the same token it would only repeat this answer.
func (c *cloud) token(name string, turn int) (token string) {
	text := fmt.Sprintf("%s/%s/%d", c.o.Fleet, name, turn)
	for token == "" || c.spent.Has(token) {
		sum := sha256.Sum256([]byte(text + token))
		token = "drover-" + hex.EncodeToString(sum[:16])
	}
	return token
}

// overrides returns the candidates, each in every subnet of its zone.
func (c *cloud) overrides(s supply, candidates []driver.Candidate) (all []params, err error) {
	for i, candidate := range candidates {
		for _, sub := range s.subnets {
			if sub.Zone != candidate.Zone || len(all) == maxOverrides {
				continue
			}
			all = append(all, params{
				"InstanceType": candidate.ProviderType, "SubnetId": sub.ID, "ImageId": candidate.Image, "Priority": i,
				"BlockDeviceMappings": c.volumes(s.images[candidate.Image], s.Disk),
			})
		}
	}
	if len(all) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "there is no subnet in zone %s", candidates[0].Zone)
	}
	return all, nil
}

// volumes returns the root volume, at least as large as requested, and the configured additional ones.
func (c *cloud) volumes(i image, disk drover.Bytes) (all []params) {
	root := c.config.Volume
	root.Device, root.Size = i.Root, max(disk, i.size())
	for _, v := range slices.Concat([]volume{root}, c.config.Volumes) {
		if v.Device != "" {
			all = append(all, params{"DeviceName": v.Device, "Ebs": v.ebs()})
		}
	}
	return all
}

func (v volume) ebs() params {
	return params{
		"DeleteOnTermination": true, "Encrypted": v.Encrypted == nil || *v.Encrypted, "VolumeType": cmp.Or(v.Type, defaultVolume),
		"VolumeSize": kit.Given(v.Size.WholeGiB()), "Iops": kit.Given(v.IOPS), "Throughput": kit.Given(v.Throughput), "KmsKeyId": kit.Given(v.Key),
	}
}

// instance translates the answer to the call.
func (s supply) instance(made fleetItem, m drover.Market) driver.Instance {
	return driver.Instance{
		ID: made.IDs[0], Tags: s.tags, ProviderType: cmp.Or(made.Type, made.AskedType), Market: m, State: driver.Pending,
		Zone: cmp.Or(made.Zone, s.zoneOf(made.Subnet), made.AskedZone, s.zoneOf(made.AskedSubnet)),
	}
}

func (s supply) zoneOf(subnet string) string {
	for _, sub := range s.subnets {
		if sub.ID == subnet {
			return sub.Zone
		}
	}
	return ""
}

// recall finds an instance that was requested earlier with other candidates.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	all, err := c.List(ctx, map[string]string{driver.TagFleet: r.Tags[driver.TagFleet], driver.TagName: r.Tags[driver.TagName]})
	if err == nil && len(all) == 0 {
		err = drover.Errorf(drover.KindTransient, "it was requested earlier with other candidates and is not visible yet")
	}
	if err != nil {
		return driver.Instance{}, err
	}
	return all[0], nil
}

// template ensures that the request's launch template and its key pair exist, and returns the template's name. The
// name derives from the content, so all controllers of one fleet use the same.
func (c *cloud) template(ctx context.Context, r driver.CreateRequest) (string, error) {
	key, err := c.keyPair(ctx, r.PublicKey)
	if err != nil {
		return "", err
	}
	data, err := c.templateData(r.Template, key)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(data)
	if err != nil {
		return "", drover.Errorf(drover.KindInvalid, "write the launch template: %v", err)
	}
	name := c.nameOf(string(content))
	err = c.once(ctx, name, func() error {
		return c.api.do(ctx, "CreateLaunchTemplate", params{
			"LaunchTemplateName": name, "LaunchTemplateData": data, "TagSpecifications": c.sharedTags("launch-template"), "ClientToken": rand.Text(),
		}, nil)
	})
	return name, errs.Classify("create launch template "+name, err)
}

// keyPair returns the name of the fleet's key pair, which it imports if necessary.
func (c *cloud) keyPair(ctx context.Context, public string) (string, error) {
	if c.config.KeyPair != "" || public == "" {
		return c.config.KeyPair, nil
	}
	name := c.nameOf(public)
	err := c.once(ctx, name, func() error {
		material := base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(public)))
		return c.api.do(ctx, "ImportKeyPair", params{"KeyName": name, "PublicKeyMaterial": material, "TagSpecifications": c.sharedTags("key-pair")}, nil)
	})
	return name, errs.Classify("import key pair "+name, err)
}

// nameOf returns the name of a shared resource with this content.
func (c *cloud) nameOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "drover-" + c.o.Fleet + "-" + hex.EncodeToString(sum[:8])
}

// once creates a shared resource unless it is known to exist. It succeeds if another controller was first.
func (c *cloud) once(ctx context.Context, name string, make func() error) error {
	_, err := c.made.Get(ctx, name, func() (none struct{}, err error) {
		if err = make(); errs.KindOf(err) == drover.KindConflict {
			return none, nil
		}
		return none, err
	})
	return err
}

// sharedTags are the tags of shared resources.
func (c *cloud) sharedTags(of string) []params {
	return []params{{"ResourceType": of, "Tags": tagsOf(kit.MergeTags(c.config.Tags, map[string]string{driver.TagFleet: c.o.Fleet}))}}
}

// templateData is the user's raw template with Drover's values on top.
func (c *cloud) templateData(raw, key string) (params, error) {
	data, err := readTemplate(raw)
	if err != nil {
		return nil, err
	}
	metadata, given := data["MetadataOptions"].(params)
	if !given {
		metadata = params{"HttpPutResponseHopLimit": c.config.MetadataHops}
	}
	metadata["HttpTokens"], metadata["HttpEndpoint"] = "required", "enabled"
	data["MetadataOptions"], data["InstanceInitiatedShutdownBehavior"] = metadata, "terminate"
	delete(data, "DisableApiTermination") // or Drover could not destroy the instance
	if key != "" {
		data["KeyName"] = key
	}
	if p := c.config.InstanceProfile; strings.HasPrefix(p, "arn:") {
		data["IamInstanceProfile"] = params{"Arn": p}
	} else if p != "" {
		data["IamInstanceProfile"] = params{"Name": p}
	}
	// With a public address, the security groups must be in the interface.
	if public := c.config.PublicAddress; public != nil {
		data["NetworkInterfaces"] = []params{{
			"DeviceIndex": 0, "AssociatePublicIpAddress": *public, "Groups": c.config.SecurityGroups, "DeleteOnTermination": true,
		}}
	} else if len(c.config.SecurityGroups) > 0 {
		data["SecurityGroupIds"] = c.config.SecurityGroups
	}
	if p := c.config.Placement; p != (placement{}) {
		data["Placement"] = params{"GroupName": kit.Given(p.Group), "PartitionNumber": kit.Given(p.Partition)}
	}
	return data, nil
}

// template has the keys of the API's RequestLaunchTemplateData:
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html.
var template = kit.Template{
	Hint:  `write JSON with the keys of RequestLaunchTemplateData in the EC2 API; for example, {"EbsOptimized": true}`,
	Given: []string{"UserData", "ImageId", "InstanceType", "InstanceMarketOptions"},
	Use:   "use the cloud's image and cloud_init keys, and let Drover choose types and markets",
	Keys: `{"BlockDeviceMappings": [{"DeviceName": "", "Ebs": {"DeleteOnTermination": true, "EbsCardIndex": 0, "Encrypted": true, "Iops": 0, "KmsKeyId": "", "SnapshotId": "",
		"Throughput": 0, "VolumeInitializationRate": 0, "VolumeSize": 0, "VolumeType": ""}, "NoDevice": "", "VirtualName": ""}], "CapacityReservationSpecification":
		{"CapacityReservationPreference": "", "CapacityReservationTarget": {"CapacityReservationId": "", "CapacityReservationResourceGroupArn": ""}}, "CpuOptions": {"AmdSevSnp": "",
		"CoreCount": 0, "NestedVirtualization": "", "ThreadsPerCore": 0}, "CreditSpecification": {"CpuCredits": ""}, "DisableApiStop": true, "DisableApiTermination": true,
		"EbsOptimized": true, "ElasticGpuSpecifications": [{"Type": ""}], "ElasticInferenceAccelerators": [{"Type": "", "Count": 0}], "EnclaveOptions": {"Enabled": true},
		"HibernationOptions": {"Configured": true}, "IamInstanceProfile": {"Arn": "", "Name": ""}, "InstanceInitiatedShutdownBehavior": "", "InstanceRequirements": {"MemoryMiB":
		{"Min": 0, "Max": 0}, "VCpuCount": {"Min": 0, "Max": 0}, "AcceleratorCount": {"Max": 0, "Min": 0}, "AcceleratorManufacturers": [""], "AcceleratorNames": [""],
		"AcceleratorTotalMemoryMiB": {"Max": 0, "Min": 0}, "AcceleratorTypes": [""], "AllowedInstanceTypes": [""], "BareMetal": "", "BaselineEbsBandwidthMbps": {"Max": 0, "Min": 0},
		"BaselinePerformanceFactors": {"Cpu": {"References": [{"InstanceFamily": ""}]}}, "BurstablePerformance": "", "CpuManufacturers": [""], "ExcludedInstanceTypes": [""],
		"InstanceGenerations": [""], "LocalStorage": "", "LocalStorageTypes": [""], "MaxSpotPriceAsPercentageOfOptimalOnDemandPrice": 0, "MemoryGiBPerVCpu": {"Max": 0, "Min": 0},
		"NetworkBandwidthGbps": {"Max": 0, "Min": 0}, "NetworkInterfaceCount": {"Max": 0, "Min": 0}, "OnDemandMaxPricePercentageOverLowestPrice": 0, "RequireEncryptionInTransit":
		true, "RequireHibernateSupport": true, "SpotMaxPricePercentageOverLowestPrice": 0, "TotalLocalStorageGB": {"Max": 0, "Min": 0}}, "KernelId": "", "KeyName": "",
		"LicenseSpecifications": [{"LicenseConfigurationArn": ""}], "MaintenanceOptions": {"AutoRecovery": ""}, "MetadataOptions": {"HttpEndpoint": "", "HttpProtocolIpv6": "",
		"HttpPutResponseHopLimit": 0, "HttpTokens": "", "InstanceMetadataTags": ""}, "Monitoring": {"Enabled": true}, "NetworkInterfaces": [{"AssociateCarrierIpAddress": true,
		"AssociatePublicIpAddress": true, "ConnectionTrackingSpecification": {"TcpEstablishedTimeout": 0, "UdpStreamTimeout": 0, "UdpTimeout": 0}, "DeleteOnTermination": true,
		"Description": "", "DeviceIndex": 0, "EnaQueueCount": 0, "EnaSrdSpecification": {"EnaSrdEnabled": true, "EnaSrdUdpSpecification": {"EnaSrdUdpEnabled": true}}, "Groups": [""],
		"InterfaceType": "", "Ipv4PrefixCount": 0, "Ipv4Prefixes": [{"Ipv4Prefix": ""}], "Ipv6AddressCount": 0, "Ipv6Addresses": [{"Ipv6Address": ""}], "Ipv6PrefixCount": 0,
		"Ipv6Prefixes": [{"Ipv6Prefix": ""}], "NetworkCardIndex": 0, "NetworkInterfaceId": "", "PrimaryIpv6": true, "PrivateIpAddress": "", "PrivateIpAddresses": [{"Primary": true,
		"PrivateIpAddress": ""}], "SecondaryPrivateIpAddressCount": 0, "SubnetId": ""}], "NetworkPerformanceOptions": {"BandwidthWeighting": ""}, "Operator": {"Principal": ""},
		"Placement": {"Affinity": "", "AvailabilityZone": "", "AvailabilityZoneId": "", "GroupId": "", "GroupName": "", "HostId": "", "HostResourceGroupArn": "", "PartitionNumber": 0,
		"SpreadDomain": "", "Tenancy": ""}, "PrivateDnsNameOptions": {"EnableResourceNameDnsAAAARecord": true, "EnableResourceNameDnsARecord": true, "HostnameType": ""}, "RamDiskId":
		"", "SecondaryInterfaces": [{"DeleteOnTermination": true, "DeviceIndex": 0, "InterfaceType": "", "NetworkCardIndex": 0, "PrivateIpAddressCount": 0, "PrivateIpAddresses":
		[{"PrivateIpAddress": ""}], "SecondarySubnetId": ""}], "SecurityGroupIds": [""], "SecurityGroups": [""], "TagSpecifications": [{"ResourceType": "", "Tags": [{"Key": "",
		"Value": ""}]}]}`,
}

// readTemplate reads a raw template.
func readTemplate(raw string) (data params, err error) {
	if err = template.Read(raw, &data); data == nil {
		data = params{}
	}
	return data, err
}
