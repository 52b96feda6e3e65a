package drover_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"drover"
)

// lots draws resources of at most this much each, so several of the smaller ones fit into larger ones.
func lots(most int64) *rapid.Generator[drover.Resources] {
	return rapid.Custom(func(t *rapid.T) drover.Resources {
		return drover.Resources{
			CPU:    drover.MilliCPU(rapid.Int64Range(0, most).Draw(t, "cpu")),
			Memory: drover.Bytes(rapid.Int64Range(0, most).Draw(t, "memory")),
			Disk:   drover.Bytes(rapid.Int64Range(0, most).Draw(t, "disk")),
			GPUs:   int(rapid.Int64Range(0, most).Draw(t, "gpus")),
			Arch:   rapid.SampledFrom([]drover.Arch{"", "amd64", "arm64"}).Draw(t, "arch"),
		}
	})
}

func short(r drover.Resources) bool { return r.CPU < 0 || r.Memory < 0 || r.Disk < 0 || r.GPUs < 0 }

// covers K14
func TestResources(t *testing.T) {
	t.Run("Times is the most that can be taken without a shortage", rapid.MakeCheck(func(t *rapid.T) {
		r, need, most := lots(1000).Draw(t, "r"), lots(100).Draw(t, "need"), rapid.IntRange(0, 50).Draw(t, "most")
		n := r.Times(need, most)
		switch {
		case n < 0 || n > most:
			t.Fatalf("%d fit, of at most %d", n, most)
		case short(r.Minus(need, n)):
			t.Fatalf("%d do not fit", n)
		case n > 0 && !r.Fits(need):
			t.Fatalf("%d fit, but not one", n)
		case n < most && r.Fits(need) && !short(r.Minus(need, n+1)):
			t.Fatalf("%d would fit as well", n+1)
		case n == 0 && most > 0 && r.Fits(need):
			t.Fatal("one would fit")
		}
	}))
	t.Run("a misfit names a resource that is lacking", rapid.MakeCheck(func(t *rapid.T) {
		r, need := lots(10).Draw(t, "r"), lots(10).Draw(t, "need")
		name := r.Misfit(need).Check
		if r.Fits(need) != (name == "") {
			t.Fatalf("fits %v, lacks %q", r.Fits(need), name)
		}
		same := map[string]bool{
			"": true, "arch": need.Arch != "" && need.Arch != r.Arch, "vcpus": need.CPU > r.CPU, "memory": need.Memory > r.Memory,
			"disk": need.Disk > r.Disk, "gpus": need.GPUs > r.GPUs,
		}
		if !same[name] {
			t.Fatalf("it does not lack %q", name)
		}
	}))
	t.Run("Plus undoes Minus", rapid.MakeCheck(func(t *rapid.T) {
		r, need, n := lots(1000).Draw(t, "r"), lots(100).Draw(t, "need"), rapid.IntRange(0, 50).Draw(t, "n")
		if got := r.Minus(need, n).Plus(need, n); got != r {
			t.Fatalf("%+v became %+v", r, got)
		}
	}))
	t.Run("the text has both amounts, with units", func(t *testing.T) {
		r := drover.Resources{CPU: 2000, Memory: 4 * drover.GiB}
		if got := r.Misfit(drover.Resources{CPU: 1500, Memory: 8 * drover.GiB}).String(); got != "the job needs 8Gi of memory, but it has 4Gi" {
			t.Error(got)
		}
		if got := r.Misfit(drover.Resources{CPU: 2500}).String(); got != "the job needs 2.5 vCPUs, but it has 2" {
			t.Error(got)
		}
	})
}

// covers K2 K14
func TestShape(t *testing.T) {
	offer := drover.Offering{Cloud: "here", Zone: "a", Market: drover.Spot, Type: drover.InstanceType{
		Name: "small", Resources: drover.Resources{CPU: 2000, Memory: drover.GiB, Arch: "amd64"}}}
	for _, c := range []struct {
		what, refusal string
		shape         drover.Shape
	}{
		{"a job without requirements accepts it", "", drover.Shape{}},
		{"a type without its own disk can have any disk", "", drover.Shape{Need: drover.Resources{Disk: drover.TiB}}},
		{"another cloud is refused", "placement", drover.Shape{Placement: drover.Placement{Cloud: "there"}}},
		{"another zone is refused", "placement", drover.Shape{Placement: drover.Placement{Zone: "b"}}},
		{"another type is refused", "placement", drover.Shape{Placement: drover.Placement{Type: "large"}}},
		{"the right place is accepted", "", drover.Shape{Placement: drover.Placement{Cloud: "here", Zone: "a", Type: "small"}}},
		{"a job that never wants spot refuses it", "market", drover.Shape{Spot: drover.SpotNever}},
		{"a job that requires spot accepts it", "", drover.Shape{Spot: drover.SpotRequire}},
		{"a type that is too small is refused", "vcpus", drover.Shape{Need: drover.Resources{CPU: 2001}}},
		{"another architecture is refused", "arch", drover.Shape{Need: drover.Resources{Arch: "arm64"}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if why := c.shape.Misfit(offer).Check; why != c.refusal || c.shape.Accepts(offer) != (c.refusal == "") {
				t.Errorf("got %q", why)
			}
		})
	}
	t.Run("a job that requires spot refuses on-demand", func(t *testing.T) {
		onDemand := offer
		onDemand.Market = drover.OnDemand
		if (drover.Shape{Spot: drover.SpotRequire}).Accepts(onDemand) || !(drover.Shape{Spot: drover.SpotNever}).Accepts(onDemand) {
			t.Error("it accepts it, or a job that never wants spot refuses it")
		}
	})
}

func TestNearestMiss(t *testing.T) {
	offer := func(name string, cpu drover.MilliCPU, memory drover.Bytes, gpus int) drover.Offering {
		return drover.Offering{Cloud: "c", Market: drover.OnDemand, Type: drover.InstanceType{
			Name: name, Resources: drover.Resources{CPU: cpu, Memory: memory, GPUs: gpus, Arch: "amd64"}}}
	}
	all := []drover.Offering{offer("a", 2000, drover.GiB, 0), offer("b", 16000, 8*drover.GiB, 0), offer("c", 8000, 4*drover.GiB, 0)}
	for _, c := range []struct {
		what, want string
		need       drover.Resources
	}{
		{"a shape that fits somewhere misses nothing", "", drover.Resources{CPU: 16000}},
		{"of types that are too small, the largest is named", `it needs 64 vCPUs, but type "b" of cloud "c" has 16`, drover.Resources{CPU: 64000}},
		{"a resource that no type has is named", `it needs 1 GPU, but type "b" of cloud "c" has 0`, drover.Resources{CPU: 16000, GPUs: 1}},
		{"another architecture is named as such", `it needs arm64, but type "a" of cloud "c" is amd64`, drover.Resources{Arch: "arm64"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := (drover.Shape{Need: c.need}).NearestMiss(all); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("an excluded type that would fit is nearer than one that is too small", func(t *testing.T) {
		big, huge := offer("big", 64000, drover.GiB, 0), offer("huge", 128000, drover.GiB, 0)
		big.Price, huge.Price = 2*drover.Dollar, 3*drover.Dollar
		leftOut := []drover.LeftOut{{Offering: huge, Why: "types.exclude matches it"}, {Offering: big, Why: "it is too dear"}}
		need := func(cpu drover.MilliCPU) drover.Shape { return drover.Shape{Need: drover.Resources{CPU: cpu}} }
		for cpu, want := range map[drover.MilliCPU]string{
			16000: "", 64000: `type "big" of cloud "c" would fit, but it is too dear`, 65000: `type "huge" of cloud "c" would fit, but types.exclude matches it`,
			256000: `it needs 256 vCPUs, but type "b" of cloud "c" has 16`,
		} {
			if got := need(cpu).NearestMiss(all, leftOut...); got != want {
				t.Errorf("%v: got %q", cpu, got)
			}
		}
	})
	t.Run("of types above max_price, the cheapest is named, before any that is too small", func(t *testing.T) {
		big, huge := offer("big", 64000, drover.GiB, 0), offer("huge", 128000, drover.GiB, 0)
		big.Price, huge.Price = 2*drover.Dollar, 3*drover.Dollar
		s := drover.Shape{Need: drover.Resources{CPU: 64000}, Placement: drover.Placement{MaxPrice: drover.Dollar}}
		if got := s.NearestMiss(append(all, huge, big)); got != `type "big" of cloud "c" would fit, but costs $2.0000 an hour, more than max_price, $1.0000` {
			t.Errorf("got %q", got)
		}
	})
	t.Run("reports that there are no types", func(t *testing.T) {
		if got := (drover.Shape{}).NearestMiss(nil); got != "no instance types are offered" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("every misfit has a text, and nothing else has", rapid.MakeCheck(func(t *rapid.T) {
		s := drover.Shape{
			Need:      lots(10).Draw(t, "need"),
			Placement: drover.Placement{Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"), MaxPrice: rapid.SampledFrom([]drover.Money{0, drover.Dollar}).Draw(t, "most")},
			Spot:      rapid.SampledFrom([]drover.SpotPolicy{drover.SpotPrefer, drover.SpotRequire, drover.SpotNever}).Draw(t, "spot"),
		}
		o := drover.Offering{Cloud: "c", Zone: "a", Market: drover.Spot, Type: drover.InstanceType{Name: "t", Resources: lots(10).Draw(t, "has")},
			Price: rapid.SampledFrom([]drover.Money{0, drover.Dollar, drover.Dollar + 1}).Draw(t, "price")}
		why, got := s.Misfit(o), s.NearestMiss([]drover.Offering{o})
		if (why.Check == "") != (got == "") {
			t.Fatalf("%+v is explained as %q", why, got)
		}
	}))
}

func TestVCPUPrice(t *testing.T) {
	t.Run("an offering is affordable at its price per vCPU, rounded up, and not for less", rapid.MakeCheck(func(t *rapid.T) {
		o := drover.Offering{Price: drover.Money(rapid.Int64Range(2, 1e15).Draw(t, "price"))}
		o.Type.Resources.CPU = drover.MilliCPU(rapid.Int64Range(1, 1e6).Draw(t, "cpu"))
		each := o.VCPUPrice()
		if exact := float64(o.Price) * 1000 / float64(o.Type.Resources.CPU); float64(each) < exact*(1-1e-12) || float64(each) > exact*(1+1e-12)+1 {
			t.Fatalf("a vCPU costs %d, %f exactly", each, exact)
		}
		if d := (drover.Demand{VCPU: each}); !d.Affords(o) || each > 1 && (drover.Demand{VCPU: each - 1}).Affords(o) || !(drover.Demand{}).Affords(o) {
			t.Fatalf("affordable for less than %d, or not for that or without a limit", each)
		}
	}))
	t.Run("without vCPUs, or if they cost too much to count, it is the largest amount", func(t *testing.T) {
		none, dearest := drover.Offering{Price: 1}, drover.Offering{Price: math.MaxInt64}
		dearest.Type.Resources.CPU = 1
		if none.VCPUPrice() != math.MaxInt64 || dearest.VCPUPrice() != math.MaxInt64 {
			t.Errorf("they cost %d and %d", none.VCPUPrice(), dearest.VCPUPrice())
		}
	})
}
