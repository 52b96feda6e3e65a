package pack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
)

func offering(cloud, name string, cpus int64, memory drover.Bytes, price drover.Money) drover.Offering {
	return drover.Offering{Cloud: cloud, Zone: "z", Market: drover.OnDemand, Price: price, Type: drover.InstanceType{
		Name: name, ProviderType: name,
		Resources: drover.Resources{CPU: drover.MilliCPU(cpus * 1000), Memory: memory, Arch: "amd64"},
	}}
}

func demand(cpus drover.MilliCPU, memory drover.Bytes, count int) drover.Demand {
	return drover.Demand{Count: count, Shape: drover.Shape{Need: drover.Resources{CPU: cpus, Memory: memory}, Spot: drover.SpotPrefer}}
}

func problem(offerings []drover.Offering, room int, demands ...drover.Demand) drover.Problem {
	clouds := []drover.CloudRoom{}
	seen := map[string]bool{}
	for _, o := range offerings {
		if !seen[o.Cloud] {
			seen[o.Cloud] = true
			clouds = append(clouds, drover.CloudRoom{Cloud: o.Cloud, Room: room})
		}
	}
	return drover.Problem{ID: 7, Demands: demands, Offerings: offerings, Room: room, Clouds: clouds, Steps: 100000}
}

func TestSolve(t *testing.T) {
	small := offering("c", "small", 2, 4*drover.GiB, 100)
	large := offering("c", "large", 8, 16*drover.GiB, 390)
	fat := offering("c", "fat", 2, 64*drover.GiB, 300)
	twice := offering("c", "twice", 4, 8*drover.GiB, 200)
	tests := []struct {
		name string
		p    drover.Problem
		want string
	}{
		{"one job takes the cheapest type that holds it", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 1)), "small:[0×1]"},
		{"many jobs take the type with the lowest price per job", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 16)), "large:[0×8] large:[0×8]"},
		{"of types with one price per job many jobs take the largest", problem([]drover.Offering{small, twice}, 9, demand(1000, drover.GiB, 6)), "twice:[0×4] small:[0×2]"},
		{"a rest takes what is cheapest for the rest", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 9)), "large:[0×8] small:[0×1]"},
		{"a later demand fills what an earlier one left", problem([]drover.Offering{small}, 9, demand(1500, drover.GiB, 1), demand(500, drover.GiB, 1)), "small:[0×1 1×1]"},
		{"memory decides as well as vCPUs", problem([]drover.Offering{small, fat}, 9, demand(1000, 8*drover.GiB, 2)), "fat:[0×2]"},
		{"the room is never passed", problem([]drover.Offering{small}, 2, demand(1000, drover.GiB, 9)), "small:[0×2] small:[0×2] unmet 0×5 limit"},
		{"a demand nothing offered can hold is unmet", problem([]drover.Offering{small}, 2, demand(4000, drover.GiB, 1)), "unmet 0×1 blocked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, render(test.p, Solve(test.p))); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func render(p drover.Problem, plan drover.Plan) (text string) {
	add := func(format string, args ...any) {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf(format, args...)
	}
	for _, buy := range plan.Purchases {
		loads := []string{}
		for _, l := range buy.Loads {
			loads = append(loads, fmt.Sprintf("%d×%d", l.Demand, l.Count))
		}
		add("%s:%v", p.Offerings[buy.Candidates[0]].Type.Name, loads)
	}
	for _, u := range plan.Unmet {
		add("unmet %d×%d %s", u.Demand, u.Count, u.Code)
	}
	return text
}

func TestEveryPlanKeepsToItsProblem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		plan := Solve(p)
		served := map[int]int{}
		for _, u := range plan.Unmet {
			served[u.Demand] += u.Count
		}
		rented := map[string]int{}
		for _, buy := range plan.Purchases {
			rented[p.Offerings[buy.Candidates[0]].Cloud]++
			for _, l := range buy.Loads {
				served[l.Demand] += l.Count
			}
			for _, c := range buy.Candidates {
				checkHolds(t, p, c, buy.Loads)
			}
		}
		for d := range p.Demands {
			if served[d] != p.Demands[d].Count {
				t.Fatalf("demand %d: %d jobs served or unmet, %d wanted", d, served[d], p.Demands[d].Count)
			}
		}
		for _, c := range p.Clouds {
			if rented[c.Cloud] > c.Room {
				t.Fatalf("cloud %s: %d instances rented with room for %d", c.Cloud, rented[c.Cloud], c.Room)
			}
		}
		if len(plan.Purchases) > p.Room {
			t.Fatalf("%d instances rented with room for %d", len(plan.Purchases), p.Room)
		}
		if diff := cmp.Diff(plan, Solve(p)); diff != "" {
			t.Fatalf("a second solve differs:\n%s", diff)
		}
	})
}

func checkHolds(t *rapid.T, p drover.Problem, offering int, loads []drover.Load) {
	o := p.Offerings[offering]
	var sum drover.Resources
	for _, l := range loads {
		shape := p.Demands[l.Demand].Shape
		if !shape.Accepts(o) {
			t.Fatalf("offering %d does not suit demand %d: %s", offering, l.Demand, shape.Refuses(o))
		}
		sum = sum.Plus(shape.Need, l.Count)
	}
	sum.Disk = 0
	if !o.Type.Resources.Fits(sum) {
		t.Fatalf("offering %d cannot hold its loads: %s", offering, o.Type.Resources.Lacks(sum))
	}
}

func drawProblem(t *rapid.T) drover.Problem {
	offerings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drover.Offering {
		return offering(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cloud"), "t", rapid.Int64Range(1, 16).Draw(t, "cpus"),
			drover.Bytes(rapid.Int64Range(1, 64).Draw(t, "memory"))*drover.GiB, drover.Money(rapid.Int64Range(1, 1000).Draw(t, "price")))
	}), 0, 6).Draw(t, "offerings")
	demands := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drover.Demand {
		return demand(drover.MilliCPU(rapid.Int64Range(0, 9000).Draw(t, "cpu")), drover.Bytes(rapid.Int64Range(0, 40).Draw(t, "memory"))*drover.GiB,
			rapid.IntRange(1, 50).Draw(t, "count"))
	}), 0, 5).Draw(t, "demands")
	return problem(offerings, rapid.IntRange(0, 12).Draw(t, "room"), demands...)
}
