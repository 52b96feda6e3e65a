package pack

import (
	"fmt"
	"testing"

	"drover"
)

// BenchmarkSolve chooses among 600 offerings, for jobs of few shapes and for jobs that all have different shapes.
func BenchmarkSolve(b *testing.B) {
	for _, jobs := range []int{1000, 10_000} {
		for _, shapes := range []int{10, jobs} {
			b.Run(fmt.Sprintf("jobs=%d/shapes=%d", jobs, shapes), func(b *testing.B) {
				p := catalogue(600)
				for i := range shapes {
					p.Demands = append(p.Demands, drover.Demand{Count: jobs / shapes, Shape: drover.Shape{Spot: drover.SpotPrefer, Need: drover.Resources{
						CPU: drover.MilliCPU(500 + i%16*500), Memory: drover.Bytes(i%32+1) * drover.GiB, Disk: drover.Bytes(i+1) * drover.MiB,
					}}})
				}
				var plan drover.Plan
				for b.Loop() {
					plan = Solve(p)
				}
				b.ReportMetric(float64(len(plan.Purchases)), "instances")
				b.ReportMetric(float64(len(plan.Unmet)), "unmet")
			})
		}
	}
}

// catalogue returns a problem without jobs: types from 2 to 96 vCPUs in three zones and two markets.
func catalogue(offerings int) drover.Problem {
	p := drover.Problem{Steps: drover.PlanSteps, Room: 100_000, Clouds: []drover.CloudRoom{{Cloud: "c", Room: 100_000}}}
	for i := range offerings {
		cpu := 2 * (i/6%48 + 1)
		o := drover.Offering{Cloud: "c", Zone: string(rune('a' + i%3)), Market: drover.OnDemand, Price: drover.Money(cpu * (40_000_000 + i*1000))}
		if i%2 == 1 {
			o.Market, o.Price = drover.Spot, o.Price/3
		}
		o.Type = drover.InstanceType{Name: fmt.Sprint("type-", i/6), Resources: drover.Resources{
			CPU: drover.MilliCPU(cpu * 1000), Memory: drover.Bytes(cpu*(2+i/6%3*2)) * drover.GiB, Arch: "amd64",
		}}
		p.Offerings = append(p.Offerings, o)
	}
	return p
}

// BenchmarkOneJobAmongManyOfferings solves a queue's most frequent problem: one job, and all types of a large cloud in
// two markets.
func BenchmarkOneJobAmongManyOfferings(b *testing.B) {
	p := manyShapes(b, 1)
	for _, o := range p.Offerings[:len(p.Offerings):len(p.Offerings)] {
		o.Market, o.Price = drover.Spot, o.Price/3
		p.Offerings = append(p.Offerings, o)
	}
	for b.Loop() {
		Solve(p)
	}
}
