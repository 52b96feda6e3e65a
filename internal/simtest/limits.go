package simtest

import (
	"drover"
	"drover/internal/engine"
)

// withinLimits checks that an instance that is to be created, and all that are there, pass no limit that covers it,
// whatever they turn out to be.
func (w *World) withinLimits(in engine.Instance) {
	for _, c := range w.controller.settings.Clouds {
		if c.Name != in.Cloud {
			continue
		}
		for _, l := range c.Limits {
			own := mostOf(in, l)
			if own < 0 {
				continue
			}
			n, cpu := 1, own
			for _, o := range w.Disk.instances {
				if its := mostOf(o, l); o.Cloud == c.Name && o.Name != in.Name && its >= 0 {
					n, cpu = n+1, cpu+its
				}
			}
			if l.Instances != nil && n > *l.Instances || l.CPU != nil && cpu > *l.CPU {
				w.fail("instance %s would be the %dth and have %v vCPUs in all of what %s covers", in.Name, n, cpu, l.Name())
			}
		}
	}
}

// mostOf is the vCPUs that an instance may have of what a limit covers, less than none if it may be nothing of it.
func mostOf(in engine.Instance, l drover.Limit) drover.MilliCPU {
	may := in.Candidates
	if len(may) == 0 {
		may = []drover.Offering{{Cloud: in.Cloud, Zone: in.Zone, Market: in.Market, Type: in.Type}}
		for _, o := range Offerings(in.Cloud) {
			if o.Type.Name == in.Type.Name {
				may[0].QuotaGroup = o.QuotaGroup
			}
		}
	}
	cpu := drover.MilliCPU(-1)
	for _, o := range may {
		if l.Covers(o) {
			cpu = max(cpu, o.Type.Resources.CPU)
		}
	}
	return cpu
}
