package simtest

import (
	"drover"
	"drover/internal/engine"
)

// withinLimits checks that an instance about to be created does not exceed a limit together with the existing ones,
// whichever of its candidates each becomes.
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

// mostOf returns the most vCPUs an instance may have under a limit, or -1 if the limit covers none of its candidates.
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
