package pack

import (
	"fmt"
	"testing"
	"time"

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

// dear returns a demand with a maximum hourly price per vCPU.
func dear(most drover.Money, d drover.Demand) drover.Demand {
	d.VCPU = most
	return d
}

// most returns a demand with a maximum hourly price per instance.
func most(price drover.Money, d drover.Demand) drover.Demand {
	d.Dearest = price
	return d
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

// covers D1
func TestSolve(t *testing.T) {
	small := offering("c", "small", 2, 4*drover.GiB, 100)
	large := offering("c", "large", 8, 16*drover.GiB, 390)
	fat := offering("c", "fat", 2, 64*drover.GiB, 300)
	twice := offering("c", "twice", 4, 8*drover.GiB, 200)
	spot, never := offering("c", "spot", 2, 4*drover.GiB, 10), demand(1000, drover.GiB, 1)
	spot.Market, never.Shape.Spot = drover.Spot, drover.SpotNever
	metal := offering("c", "metal", 2, 4*drover.GiB, 95)
	booting := func(metal time.Duration, p drover.Problem) drover.Problem {
		p.Boot, p.Boots = time.Minute, []drover.Boot{{Cloud: "c", Type: "metal", Time: metal}}
		return p
	}
	measured, wide, disky := offering("c", "measured", 1, 4*drover.GiB, 1000), offering("c", "wide", 4, 16*drover.GiB, 3900), offering("c", "disky", 1, 4*drover.GiB, 1300)
	measured.DiskPrice, wide.DiskPrice, disky.Type.Resources.Disk = 10, 10, drover.TiB
	stored := func(count int, disk drover.Bytes) drover.Demand {
		d := demand(1000, drover.GiB, count)
		d.Shape.Need.Disk = disk
		return d
	}
	usual := func(disk drover.Bytes, p drover.Problem) drover.Problem {
		p.Clouds[0].Disk = disk
		return p
	}
	limited := func(name string, instances int, p drover.Problem) drover.Problem {
		p.Limits = []drover.Limit{{Cloud: "c", Type: name, Instances: &instances}}
		return p
	}
	gang := func(of int, d drover.Demand) drover.Demand {
		d.Together = of
		return d
	}
	tests := []struct {
		name string
		p    drover.Problem
		want string
	}{
		{"jobs with room for only some of them still take the cheapest", problem([]drover.Offering{small, large}, 2, demand(1500, drover.GiB, 3)), "small:[0×1] small:[0×1] unmet 0×1 limit"},
		{"a gang takes the larger type if there is no room for enough small ones", problem([]drover.Offering{small, large}, 2, gang(3, demand(1500, drover.GiB, 3))), "large:[0×3]"},
		{"a gang takes small ones if there is room for enough of them", problem([]drover.Offering{small, large}, 3, gang(3, demand(1500, drover.GiB, 3))), "small:[0×1] small:[0×1] small:[0×1]"},
		{"a type that costs more in boot time than it saves is not taken", booting(10*time.Minute, problem([]drover.Offering{metal, small}, 9, demand(1000, drover.GiB, 1))), "small:[0×1]"},
		{"nor do many jobs take such a type", booting(10*time.Minute, problem([]drover.Offering{metal, small}, 9, demand(1000, drover.GiB, 4))), "small:[0×2] small:[0×2]"},
		{"a type that saves more than its longer boot costs is taken", booting(3*time.Minute, problem([]drover.Offering{metal, small}, 9, demand(1000, drover.GiB, 1))), "metal:[0×1]"},
		{"a job takes no type whose vCPUs are too expensive for it", problem([]drover.Offering{small, large}, 9, dear(49, demand(1000, drover.GiB, 1))), "large:[0×1]"},
		{"nor is it put on such an instance rented for others", problem([]drover.Offering{small, large}, 9, demand(1000, drover.GiB, 1), dear(49, demand(1000, drover.GiB, 1))), "small:[0×1] large:[1×1]"},
		{"a job takes no instance that is too expensive as a whole", problem([]drover.Offering{small, large}, 9, most(100, demand(1000, drover.GiB, 8))), "small:[0×2] small:[0×2] small:[0×2] small:[0×2]"},
		{"a job that needs much disk takes the type that has it", problem([]drover.Offering{measured, disky}, 9, stored(1, 500*drover.GiB)), "disky:[0×1]"},
		{"a job that needs little disk takes the cheaper type", problem([]drover.Offering{measured, disky}, 9, stored(1, 20*drover.GiB)), "measured:[0×1]"},
		{"jobs that each need an instance's usual disk take one each", usual(20*drover.GiB, problem([]drover.Offering{measured, wide}, 99, stored(4, 20*drover.GiB))), "measured:[0×1] measured:[0×1] measured:[0×1] measured:[0×1]"},
		{"jobs that need no disk share a large instance", usual(20*drover.GiB, problem([]drover.Offering{measured, wide}, 99, stored(4, 0))), "wide:[0×4]"},
		{"one job takes the cheapest type that holds it", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 1)), "small:[0×1]"},
		{"many jobs take the type with the lowest price per job", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 16)), "large:[0×8] large:[0×8]"},
		{"of types with equal prices per job, many jobs take the largest", problem([]drover.Offering{small, twice}, 9, demand(1000, drover.GiB, 6)), "twice:[0×4] small:[0×2]"},
		{"the remaining jobs take the type that is cheapest for them", problem([]drover.Offering{large, small}, 9, demand(1000, drover.GiB, 9)), "large:[0×8] small:[0×1]"},
		{"a later demand fills what an earlier one left", problem([]drover.Offering{small}, 9, demand(1500, drover.GiB, 1), demand(500, drover.GiB, 1)), "small:[0×1 1×1]"},
		{"memory counts as well as vCPUs", problem([]drover.Offering{small, fat}, 9, demand(1000, 8*drover.GiB, 2)), "fat:[0×2]"},
		{"the room is never exceeded", problem([]drover.Offering{small}, 2, demand(1000, drover.GiB, 9)), "small:[0×2] small:[0×2] unmet 0×5 limit"},
		{"an empty demand does not choose for others", problem([]drover.Offering{spot, small}, 9, demand(1000, drover.GiB, 0), never), "small:[1×1]"},
		{"very many jobs that no offering can hold do not matter to others", problem([]drover.Offering{small, fat}, 9, demand(1000, 100*drover.TiB, 1e6), demand(1000, 8*drover.GiB, 1), demand(1000, drover.GiB, 1)), "fat:[1×1 2×1] unmet 0×1000000 blocked"},
		{"if a type that holds all jobs is full, a dearer one is taken", limited("small", 1, problem([]drover.Offering{small, fat}, 9, demand(1500, drover.GiB, 2))), "small:[0×1] fat:[0×1]"},
		{"a demand that no offering can hold is unmet", problem([]drover.Offering{small}, 2, demand(4000, drover.GiB, 1)), "unmet 0×1 blocked"},
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

func TestCandidatesDoNotDependOnTheNumberOfInstances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		m := newModel(p, 1)
		steps := p.Steps
		for _, b := range m.greedy(perJob, &steps).bins {
			few, runnerUp := m.candidates(b, m.nearest(b), nil)
			all, allsRunnerUp := m.candidates(b, m.byPrice(), nil)
			if diff := cmp.Diff(all, few); diff != "" {
				t.Fatalf("candidates differ:\n%s", diff)
			}
			if diff := cmp.Diff(allsRunnerUp, runnerUp); diff != "" {
				t.Fatalf("runners-up differ:\n%s", diff)
			}
		}
	})
}
