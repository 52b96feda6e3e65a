package drover

import (
	"math"
	"math/bits"
	"strconv"
)

// Arch is a processor architecture by its Go name: amd64 or arm64. Empty: any.
type Arch string

// Resources are what a job needs, or what an instance type has.
type Resources struct {
	CPU    MilliCPU `json:"cpu_milli"`
	Memory Bytes    `json:"memory_bytes"`
	Disk   Bytes    `json:"disk_bytes"`
	GPUs   int      `json:"gpus,omitempty"`
	Arch   Arch     `json:"arch,omitempty"`
}

// Fits reports whether need fits into r.
//
// It is Misfit without the result's text, because placing calls it for every instance.
func (r Resources) Fits(need Resources) bool {
	return (need.Arch == "" || need.Arch == r.Arch) && need.CPU <= r.CPU && need.Memory <= r.Memory && need.Disk <= r.Disk && need.GPUs <= r.GPUs
}

// Misfit returns the first resource of which need exceeds r; the zero Misfit if it fits.
func (r Resources) Misfit(need Resources) Misfit {
	switch {
	case need.Arch != "" && need.Arch != r.Arch:
		return Misfit{Check: "arch", Needs: string(need.Arch), Has: string(r.Arch)}
	case need.CPU > r.CPU:
		return Misfit{Check: "vcpus", Needs: counted(need.CPU.String(), "vCPU"), Has: r.CPU.String()}
	case need.Memory > r.Memory:
		return Misfit{Check: "memory", Needs: need.Memory.Rounded() + " of memory", Has: r.Memory.Rounded()}
	case need.Disk > r.Disk:
		return Misfit{Check: "disk", Needs: need.Disk.Rounded() + " of disk", Has: r.Disk.Rounded()}
	case need.GPUs > r.GPUs:
		return Misfit{Check: "gpus", Needs: counted(strconv.Itoa(need.GPUs), "GPU"), Has: strconv.Itoa(r.GPUs)}
	}
	return Misfit{}
}

// counted returns "1 GPU", "2 GPUs" and so on.
func counted(n, what string) string {
	if n != "1" {
		what += "s"
	}
	return n + " " + what
}

// Minus returns r without n times need.
func (r Resources) Minus(need Resources, n int) Resources {
	r.CPU -= need.CPU * MilliCPU(n)
	r.Memory -= need.Memory * Bytes(n)
	r.Disk -= need.Disk * Bytes(n)
	r.GPUs -= need.GPUs * n
	return r
}

// Plus returns r with n times need added.
func (r Resources) Plus(need Resources, n int) Resources { return r.Minus(need, -n) }

// Times returns how many times need fits into r, at most most.
func (r Resources) Times(need Resources, most int) int {
	if !r.Fits(need) {
		return 0
	}
	n := most
	if need.CPU > 0 {
		n = min(n, int(r.CPU/need.CPU))
	}
	if need.Memory > 0 {
		n = min(n, int(r.Memory/need.Memory))
	}
	if need.Disk > 0 {
		n = min(n, int(r.Disk/need.Disk))
	}
	if need.GPUs > 0 {
		n = min(n, r.GPUs/need.GPUs)
	}
	return n
}

// Placement limits where a job may run. An empty field leaves the choice to Drover.
type Placement struct {
	Cloud string `json:"cloud,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Type  string `json:"type,omitempty"`

	MaxPrice Money `json:"max_price,omitempty"` // maximum hourly price of the instance
}

// Allows reports whether an instance of this cloud, zone and type, with this hourly price, satisfies p.
func (p Placement) Allows(cloud, zone, instanceType string, price Money) bool {
	return p.names(cloud, zone, instanceType) && p.Pays(price)
}

// Pays reports whether the placement allows an hourly price.
func (p Placement) Pays(price Money) bool { return p.MaxPrice == 0 || price <= p.MaxPrice }

func (p Placement) names(cloud, zone, instanceType string) bool {
	return (p.Cloud == "" || p.Cloud == cloud) && (p.Zone == "" || p.Zone == zone) && (p.Type == "" || p.Type == instanceType)
}

// misfit returns the first of p's limits that the offering does not satisfy.
func (p Placement) misfit(o Offering) Misfit {
	switch {
	case p.names(o.Cloud, o.Zone, o.Type.Name):
		return Misfit{}
	case p.Cloud != "" && p.Cloud != o.Cloud:
		return Misfit{Check: "placement", Needs: "in cloud " + p.Cloud}
	case p.Zone != "" && p.Zone != o.Zone:
		return Misfit{Check: "placement", Needs: "in zone " + p.Zone}
	}
	return Misfit{Check: "placement", Needs: "on type " + p.Type}
}

// Market is how an instance is bought.
type Market string

// The two markets: OnDemand instances stay until destroyed, Spot instances are cheaper and may be interrupted by the
// cloud.
const (
	OnDemand Market = "on_demand"
	Spot     Market = "spot"
)

// SpotPolicy is which markets a job accepts.
type SpotPolicy string

// The spot policies. SpotPrefer uses the cheaper market, which is usually spot.
const (
	SpotPrefer  SpotPolicy = "prefer"
	SpotRequire SpotPolicy = "require"
	SpotNever   SpotPolicy = "never"
)

// Allows reports whether a job with this policy may run on an instance of market m.
func (p SpotPolicy) Allows(m Market) bool {
	switch p {
	case SpotRequire:
		return m == Spot
	case SpotNever:
		return m == OnDemand
	}
	return true
}

// InstanceType is a kind of instance that a cloud offers.
type InstanceType struct {
	Name         string    `json:"name"`          // in configurations and jobs
	ProviderType string    `json:"provider_type"` // the cloud's name, by which adopted instances are matched
	Resources    Resources `json:"resources"`
	LocalDisk    Bytes     `json:"local_disk_bytes,omitempty"` // scratch space on the host's own disks, in addition to the volume in Resources
}

// Offering is an instance type in one zone and market of a cloud, at a price.
type Offering struct {
	Cloud  string       `json:"cloud"`
	Zone   string       `json:"zone"`
	Type   InstanceType `json:"type"`
	Market Market       `json:"market"`
	Price  Money        `json:"price"` // per hour

	DiskPrice Money `json:"disk_price,omitempty"` // per hour, for each GiB of root volume that Price does not include; 0: the disk is part of the type

	QuotaGroup    string `json:"quota_group,omitempty"`   // the quota that it shares with other offerings of its cloud; empty: its own
	Reserved      bool   `json:"reserved,omitempty"`      // a commitment with room for another instance sets the price
	Interruptions int64  `json:"interruptions,omitempty"` // how many instances its cloud reclaims in a million instance-hours; 0: unknown
}

// WithVolume returns the offering with the price of a root volume that is larger by a size, rounded up to GiB.
func (o Offering) WithVolume(size Bytes) Offering {
	if size > 0 {
		o.Price += o.DiskPrice * Money(size.WholeGiB())
	}
	return o
}

// VCPUPrice returns the hourly price per vCPU, rounded up.
func (o Offering) VCPUPrice() Money {
	high, low := bits.Mul64(uint64(max(0, o.Price)), 1000)
	of := uint64(max(0, o.Type.Resources.CPU))
	low, carry := bits.Add64(low, of-min(1, of), 0)
	if high += carry; high >= of {
		return math.MaxInt64
	}
	each, _ := bits.Div64(high, low, of)
	return Money(min(each, math.MaxInt64))
}

// Name returns the offering's name for people and for `drover explain`.
func (o Offering) Name() string {
	return o.Cloud + "/" + o.Zone + "/" + o.Type.Name + "/" + string(o.Market)
}
