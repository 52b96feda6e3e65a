package pack

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"drover"
)

var (
	figures  = flag.Bool("figures", false, "print what plans of well-known inputs cost and take")
	peersDir = flag.String("peers", "", "folder with jobs-50000.csv.gz and types-288.json; without it what is kept of them in testdata")
	dataDir  = flag.String("data", "testdata", "folder with ec2-us-east-1.csv")
)

// TestFigures prints a line for each problem by which this package is compared with other solvers.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("run by make bench-pack")
	}
	for _, market := range []string{"any", "on_demand"} {
		for _, n := range []int{1000, 10_000, 50_000} {
			p := peersProblem(t, n, market == "on_demand")
			print1(t, fmt.Sprintf("jobs=%d types=288 market=%s", n, market), p)
		}
	}
	for _, n := range []int{1000, 10_000, 50_000} {
		p := peersProblem(t, n, false)
		p.Boot, p.SpotShare = unknownTime/50, 20_00
		print1(t, fmt.Sprintf("jobs=%d types=288 market=any fixed=2%% spot_share=20%%", n), p)
	}
	print1(t, "jobs=10000 shapes=10000 types=1101 market=on_demand", manyShapes(t, 10_000))
	for _, market := range []string{"any", "on_demand"} {
		print1(t, "jobs=10000 shapes=300 types=288 market="+market, randomShapes(t, 300, 10_000, 250, 16_000, market == "on_demand"))
		print1(t, "jobs=10000 shapes=10000 vcpus=8..64 types=288 market="+market, randomShapes(t, 10_000, 10_000, 8000, 64_000, market == "on_demand"))
	}
	print1(t, "jobs=50000 shapes=50000 types=288 market=any", randomShapes(t, 50_000, 50_000, 250, 64_000, false))
}

func print1(t *testing.T, name string, p drover.Problem) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cpuTime()
	plan := Solve(p)
	spent := cpuTime() - start
	runtime.ReadMemStats(&after)
	hourly := drover.Money(0)
	for _, b := range plan.Purchases {
		hourly += p.Offerings[b.Candidates[0]].Price
	}
	if p.SpotShare > 0 {
		plan.Bound = max(plan.Bound, ownBound(p))
	}
	ratio := plan.Cost.USD() / max(plan.Bound.USD(), 1e-9)
	fmt.Printf("pack %s instances=%d usd_per_hour=%.4f bound=%.4f ratio=%.4f cpu_s=%.3f allocs=%d\n",
		name, len(plan.Purchases), hourly.USD(), plan.Bound.USD()*hourly.USD()/plan.Cost.USD(), ratio, spent, after.Mallocs-before.Mallocs)
	for _, u := range plan.Unmet {
		t.Errorf("%s: %d jobs of demand %d have no place: %s", name, u.Count, u.Demand, u.Text)
	}
}

func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// wide returns a problem of one cloud without limits.
func wide() drover.Problem {
	return drover.Problem{Room: 1 << 20, Clouds: []drover.CloudRoom{{Cloud: "c", Room: 1 << 20}}, Steps: drover.PlanSteps}
}

// peersProblem returns the input used to measure other systems: n jobs of 30 shapes, 288 types in three zones.
func peersProblem(t testing.TB, n int, onDemand bool) drover.Problem {
	p := wide()
	p.JobsEach = 110
	for _, o := range peersOfferings(t) {
		if !onDemand || o.Market == drover.OnDemand {
			p.Offerings = append(p.Offerings, o)
		}
	}
	for _, s := range peersShapes(t, n) {
		p.Demands = append(p.Demands, s)
	}
	return p
}

func peersShapes(t testing.TB, n int) (demands []drover.Demand) {
	count := map[drover.Resources]int{}
	add := func(row []string, c int) {
		need := drover.Resources{CPU: drover.MilliCPU(number(t, row[0])), Memory: drover.Bytes(number(t, row[1]))}
		at, ok := count[need]
		if !ok {
			at = len(demands)
			count[need] = at
			demands = append(demands, drover.Demand{Shape: drover.Shape{Need: need, Spot: drover.SpotPrefer}})
		}
		demands[at].Count += c
	}
	if *peersDir == "" {
		for _, row := range table(t, "testdata/shapes.csv") {
			add(row, int(number(t, row[map[int]int{1000: 2, 10_000: 3, 50_000: 4}[n]])))
		}
		return demands
	}
	for _, row := range table(t, filepath.Join(*peersDir, "jobs-50000.csv.gz"))[:n] {
		add(row, 1)
	}
	return demands
}

func peersOfferings(t testing.TB) (list []drover.Offering) {
	add := func(name string, cpus, mem int64, zone, market string, price float64) {
		o := drover.Offering{Cloud: "c", Zone: zone, Market: drover.OnDemand, Price: drover.Money(math.Round(price * 1e9)), Type: drover.InstanceType{
			Name: name, Resources: drover.Resources{CPU: drover.MilliCPU(cpus), Memory: drover.Bytes(mem), Arch: "amd64"}}}
		if market == "spot" {
			o.Market = drover.Spot
		}
		list = append(list, o)
	}
	if *peersDir == "" {
		for _, r := range table(t, "testdata/types-288.csv.gz") {
			price, err := strconv.ParseFloat(r[8], 64)
			if err != nil {
				t.Fatal(err)
			}
			add(r[0], number(t, r[1])-number(t, r[4]), number(t, r[2])-number(t, r[5]), r[6], r[7], price)
		}
		return list
	}
	var types []struct {
		Name      string
		CPU       int64 `json:"cpu_millis"`
		Memory    int64 `json:"mem_bytes"`
		LessCPU   int64 `json:"overhead_cpu_millis"`
		LessMem   int64 `json:"overhead_mem_bytes"`
		Offerings []struct {
			Zone   string
			Market string `json:"capacity_type"`
			Price  float64
		}
	}
	text, err := os.ReadFile(filepath.Join(*peersDir, "types-288.json"))
	if err == nil {
		err = json.Unmarshal(text, &types)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range types {
		for _, o := range x.Offerings {
			add(x.Name, x.CPU-x.LessCPU, x.Memory-x.LessMem, o.Zone, o.Market, o.Price)
		}
	}
	return list
}

// manyShapes returns n jobs of n shapes on the types of EC2: vCPUs and memory log-normal, medians 1 and 2 GiB, σ 1.2,
// correlation 0.6, one job in a hundred with a GPU.
func manyShapes(t testing.TB, n int) drover.Problem {
	p := wide()
	for _, r := range table(t, filepath.Join(*dataDir, "ec2-us-east-1.csv")) {
		price, err := drover.ParseMoney(r[5])
		if err != nil {
			t.Fatal(err)
		}
		p.Offerings = append(p.Offerings, drover.Offering{Cloud: "c", Zone: "z", Market: drover.OnDemand, Price: price, Type: drover.InstanceType{
			Name: r[0], Resources: drover.Resources{CPU: drover.MilliCPU(number(t, r[1]) * 1000), Memory: drover.Bytes(number(t, r[2])) * drover.MiB,
				GPUs: int(number(t, r[3])), Arch: drover.Arch(r[4])}}})
	}
	random := rand.New(rand.NewSource(1))
	for range n {
		x := random.NormFloat64()
		y := 0.6*x + 0.8*random.NormFloat64()
		need := drover.Resources{Arch: "amd64", CPU: drover.MilliCPU(1000 * min(64, max(0.1, math.Exp(1.2*x))))}
		need.Memory = drover.Bytes(min(512, max(0.1, 2*math.Exp(1.2*y))) * float64(drover.GiB))
		if random.Float64() < 0.01 {
			need.GPUs = 1
		}
		p.Demands = append(p.Demands, drover.Demand{Count: 1, Shape: drover.Shape{Need: need, Spot: drover.SpotPrefer}})
	}
	return p
}

// randomShapes returns a problem of jobs whose shapes have vCPUs spread evenly between two numbers, and 1 to 8 GiB of
// memory per vCPU.
func randomShapes(t testing.TB, shapes, jobs, least, most int, onDemand bool) drover.Problem {
	p := wide()
	p.Offerings = peersProblem(t, 1, onDemand).Offerings
	random := rand.New(rand.NewSource(1))
	for i := range shapes {
		cpu := least + random.Intn(most-least+1)
		memory := float64(cpu) / 1000 * math.Exp2(3*random.Float64())
		count := jobs*(i+1)/shapes - jobs*i/shapes
		p.Demands = append(p.Demands, drover.Demand{Count: count, Shape: drover.Shape{Spot: drover.SpotPrefer, Need: drover.Resources{
			CPU: drover.MilliCPU(cpu), Memory: drover.Bytes(memory * float64(drover.GiB)),
		}}})
	}
	return p
}

func number(t testing.TB, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// table reads a CSV file, which may be compressed, without its header.
func table(t testing.TB, name string) [][]string {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// ownBound returns a bound for a problem with a share for spot offerings: the Lagrangian dual of the shares. Each
// offering with a share gets a surcharge per vCPU, and all offerings get cheaper by that share of it. The bound at
// these prices is valid for this problem, whatever the surcharges. They follow how much of each offering the prices
// would use.
func ownBound(p drover.Problem) (best drover.Money) {
	added, sum := make([]float64, len(p.Offerings)), 0.0
	steps := 1 << 40
	for round := range 150 {
		now := p
		now.Offerings = slices.Clone(p.Offerings)
		for i := range now.Offerings {
			o := &now.Offerings[i]
			o.Price += drover.Money(float64(o.Type.Resources.CPU) * (added[i] - sum*float64(p.SpotShare)/100_00))
			if o.Price < 0 {
				return best
			}
		}
		m := newModel(now, 1)
		pr := m.first(&steps)
		best = max(best, drover.Money(m.bound(pr, make([]int, len(m.items)))))
		use, total := usage(m, pr, len(p.Offerings))
		step := float64(pr.rest) / total / 10 / (1 + float64(round)/10)
		sum = 0
		for i, o := range p.Offerings {
			if o.Market == drover.Spot {
				added[i] = max(0, added[i]+step*(use[i]/total-float64(p.SpotShare)/100_00))
				sum += added[i]
			}
		}
	}
	return best
}

// usage returns how many vCPUs of each offering the prices would use.
func usage(m *model, pr *prices, offerings int) (use []float64, total float64) {
	use = make([]float64, offerings)
	for x, k := range pr.kinds {
		most := 0.0
		for j := range pr.dims {
			most = max(most, pr.load[x*len(pr.dims)+j])
		}
		cpus := most * float64(m.kinds[k].has[cpu])
		use[m.kinds[k].offering] += cpus
		total += cpus
	}
	return use, total
}
