package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
)

// Parsing of the lines of a scenario.

func (p *player) set(args []string) {
	life := &p.settings.Lifecycle
	for key, value := range pairs(args) {
		switch key {
		case "max":
			p.settings.Clouds[0].MaxInstances = int(p.number(value))
		case "disk":
			p.settings.Clouds[0].Disk, _ = drover.ParseBytes(value)
		case "growable":
			p.settings.Clouds[0].GrowDisk = true
		case "lag":
			p.settings.Clouds[0].ListLag = p.duration(value)
		case "describes":
			p.settings.Clouds[0].Describe = true
		case "partition":
			life.PartitionTimeout = p.duration(value)
		case "creating":
			p.settings.Clouds[0].MaxCreating = int(p.number(value))
		case "idle":
			life.IdleTimeout = p.duration(value)
		case "grow":
			p.settings.GrowMemory = int(p.number(value))
		case "keep-broken":
			life.KeepBroken = p.duration(value)
		case "max-age":
			life.MaxAge = p.duration(value)
		case "boot":
			life.BootTimeout = p.duration(value)
		case "broken-hook":
			p.settings.BrokenHook = true
		case "user-instances":
			p.settings.Users.Instances = int(p.number(value))
		case "user-vcpus":
			p.settings.Users.VCPUs, _ = drover.ParseMilliCPU(value)
		case "sharing":
			life.Sharing = drover.Sharing(value)
		case "use-once":
			life.UseOnce = true
		case "keep":
			p.settings.Keep = p.duration(value)
		case "fleet-max":
			p.settings.MaxInstances = int(p.number(value))
		case "cost":
			p.settings.MaxCost, _ = drover.ParseMoney(value)
		case "interval":
			p.settings.Clouds[0].ListInterval = p.duration(value)
		case "schedule":
			p.settings.ScheduleTimeout = p.duration(value)
		case "clouds":
			p.settings.Clouds = slices.Clone(p.settings.Clouds)[:1]
			for _, name := range strings.Split(value, ",")[1:] {
				c := p.settings.Clouds[0]
				c.Name, c.Leaving = name, false
				p.settings.Clouds = append(p.settings.Clouds, c)
			}
		case "reserved":
			p.settings.Clouds = slices.Clone(p.settings.Clouds)
			p.settings.Clouds[0].Reserved = p.reserved(value)
		case "limit":
			p.settings.Clouds = slices.Clone(p.settings.Clouds)
			p.settings.Clouds[0].Limits = []drover.Limit{p.limit(value)}
		case "period":
			p.settings.Clouds = slices.Clone(p.settings.Clouds)
			p.settings.Clouds[0].Billing.Period = p.duration(value)
		case "mix":
			base, percent, _ := strings.Cut(value, ":")
			p.settings.Mix.OnDemand = drover.Part{Base: int(p.number(base)), Percent: int(p.number(percent))}
		case "spread":
			p.settings.SpotShare = int(p.number(value))
		case "shares":
			p.settings.Shares = p.shares(value)
		case "leaving":
			p.settings.Clouds = slices.Clone(p.settings.Clouds)
			for i := range p.settings.Clouds {
				p.settings.Clouds[i].Leaving = p.settings.Clouds[i].Name == value
			}
		default:
			p.t.Fatalf("no such setting: %s", key)
		}
	}
}

// shares reads "user", "user,ada:2,default:3" or "label:NAME,x:2".
func (p *player) shares(text string) (s drover.Shares) {
	words := strings.Split(text, ",")
	s.By, s.Weights = drover.ShareBy(words[0]), map[string]int{}
	for _, word := range words[1:] {
		name, weight, _ := strings.Cut(word, ":")
		if s.Weights[name] = int(p.number(weight)); name == "default" {
			s.Default = s.Weights[name]
		}
	}
	return s
}

// limit reads "group:vcpus".
func (p *player) limit(text string) drover.Limit {
	group, cpus, _ := strings.Cut(text, ":")
	cpu, _ := drover.ParseMilliCPU(cpus)
	return drover.Limit{QuotaGroup: group, CPU: &cpu}
}

// reserved reads "type:count:price".
func (p *player) reserved(text string) []engine.Reservation {
	parts := strings.Split(text, ":")
	price, _ := drover.ParseMoney(parts[2])
	return []engine.Reservation{{Type: parts[0], Count: int(p.number(parts[1])), Price: price}}
}

func (p *player) offers(args []string) {
	for _, a := range args {
		cloud := "c"
		if other, rest, ok := strings.Cut(a, "/"); ok {
			cloud, a = other, rest
		}
		market := drover.OnDemand
		if rest, ok := strings.CutPrefix(a, "~"); ok {
			market, a = drover.Spot, rest
		}
		if name, gone := strings.CutPrefix(a, "-"); gone {
			p.offerings = slices.DeleteFunc(p.offerings, func(o drover.Offering) bool { return o.Cloud == cloud && o.Type.Name == name })
			continue
		}
		parts, zone := strings.Split(a, ":"), "z"
		if name, in, ok := strings.Cut(parts[0], "@"); ok {
			parts[0], zone = name, in
		}
		cpu, _ := drover.ParseMilliCPU(parts[1])
		price, _ := drover.ParseMoney(parts[2])
		group := ""
		if len(parts) > 3 {
			group = parts[3]
		}
		o := drover.Offering{QuotaGroup: group, Cloud: cloud, Zone: zone, Market: market, Price: price, Type: drover.InstanceType{
			Name: parts[0], ProviderType: parts[0], Resources: drover.Resources{CPU: cpu, Memory: drover.Bytes(cpu) * drover.MiB * 4, Disk: drover.TiB, Arch: "amd64"},
		}}
		if strings.HasPrefix(parts[0], "arm") {
			o.Type.Resources.Arch = "arm64"
		}
		if len(parts) > 4 { // the price of a GiB of its volume
			o.DiskPrice, _ = drover.ParseMoney(parts[4])
			o.Type.Resources.Disk = 0
		}
		p.offerings = append(p.offerings, o)
	}
	slices.SortFunc(p.offerings, func(a, b drover.Offering) int {
		return cmp.Or(cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Market, b.Market), cmp.Compare(a.Zone, b.Zone))
	})
}

// budget reads "user=NAME label=NAME:VALUE hourly=1 daily=2 monthly=3 soft-daily=1 stop". It replaces a budget of the
// same scope.
func (p *player) budget(args []string) {
	var b engine.Budget
	limits := map[string]*drover.Money{
		"hourly": &b.Hard.Hourly, "daily": &b.Hard.Daily, "monthly": &b.Hard.Monthly,
		"soft-hourly": &b.Soft.Hourly, "soft-daily": &b.Soft.Daily, "soft-monthly": &b.Soft.Monthly,
	}
	for key, value := range pairs(args) {
		switch {
		case key == "user":
			b.User = value
		case key == "label":
			b.Label = strings.ReplaceAll(value, ":", "=")
		case key == "stop":
			b.Stop = true
		case limits[key] != nil:
			*limits[key], _ = drover.ParseMoney(value)
		default:
			p.t.Fatalf("no such key of a budget: %s", key)
		}
	}
	same := func(o engine.Budget) bool { return o.Scope() == b.Scope() }
	p.settings.Budgets = append(slices.DeleteFunc(slices.Clone(p.settings.Budgets), same), b)
}

// move reads "name:price".
func (p *player) move(args []string) {
	p.offerings = slices.Clone(p.offerings)
	for _, a := range args {
		name, price, _ := strings.Cut(a, ":")
		for i, o := range p.offerings {
			if o.Type.Name == name {
				p.offerings[i].Price, _ = drover.ParseMoney(price)
			}
		}
	}
}

// past reads "past=name:price:ago,price:ago": how the price of a spot offering has moved.
func (p *player) past(args []string) (past []engine.Past) {
	for _, a := range args {
		text, is := strings.CutPrefix(a, "past=")
		if !is {
			continue
		}
		name, steps, _ := strings.Cut(text, ":")
		one := engine.Past{OfferingKey: engine.OfferingKey{Type: name, Zone: "z", Market: drover.Spot}}
		for _, step := range strings.Split(steps, ",") {
			amount, ago, _ := strings.Cut(step, ":")
			price, _ := drover.ParseMoney(amount)
			one.Prices = append(one.Prices, engine.PastPrice{From: p.now.Add(-p.duration(ago)), Price: price})
		}
		past = append(past, one)
	}
	return past
}

func (p *player) submitted(args []string) engine.Job {
	j := engine.Job{Number: p.number(args[0]), Name: "job" + args[0], Priority: 1, Attempts: 3, Queued: engine.Ranges{{First: -1, Last: -1}}}
	j.Shape = drover.Shape{Spot: drover.SpotPrefer, Need: drover.Resources{CPU: 1000, Memory: drover.GiB, Disk: drover.GiB}}
	for key, value := range pairs(args[1:]) {
		switch key {
		case "x":
			j.Array = drover.Array{First: 0, Last: int(p.number(value)) - 1, Set: true}
			j.Queued = engine.Ranges{{First: 0, Last: j.Array.Last}}
		case "cpu":
			j.Shape.Need.CPU, _ = drover.ParseMilliCPU(value)
		case "disk":
			j.Shape.Need.Disk, _ = drover.ParseBytes(value)
		case "gpus":
			j.Shape.Need.GPUs = int(p.number(value))
		case "memory":
			j.Shape.Need.Memory, _ = drover.ParseBytes(value)
		case "type":
			j.Shape.Placement.Type = value
		case "max_price":
			j.Shape.Placement.MaxPrice, _ = drover.ParseMoney(value)
		case "after":
			for _, n := range strings.Split(value, ",") {
				j.After = append(j.After, p.number(n))
			}
		case "after_any":
			for _, n := range strings.Split(value, ",") {
				j.AfterAny = append(j.AfterAny, p.number(n))
			}
		case "gang":
			j.Gang = int(p.number(value))
		case "max_running":
			j.MaxRunning = int(p.number(value))
		case "priority":
			j.Priority = int(p.number(value))
		case "attempts":
			j.Attempts = int(p.number(value))
		case "retry":
			parts := strings.Split(value, ":") // an exit code, how often, and perhaps a delay
			j.Retry = drover.Retry{ExitCodes: []int{int(p.number(parts[0]))}, Times: int(p.number(parts[1]))}
			if len(parts) > 2 {
				j.Retry.Delay = p.duration(parts[2])
			}
		case "timeout":
			j.Timeout = p.duration(value)
		case "expected":
			j.Expected = p.duration(value)
		case "max_wait":
			j.MaxWait = p.duration(value)
		case "user":
			j.User = value
		case "label":
			name, of, _ := strings.Cut(value, ":")
			j.Labels = map[string]string{name: of}
		case "again":
			j.Again = p.number(value)
		default:
			p.t.Fatalf("no such key of a job: %s", key)
		}
	}
	p.jobs[j.Number] = j
	return j
}

// connected connects an instance whose runner reports its attempts and perhaps a "notice", or that it is "ailing".
func (p *player) connected(id int64, args []string) engine.Connected {
	ev := engine.Connected{Effect: p.effect(fmt.Sprint("connect ", id)), Instance: id, HostKey: fmt.Sprint("key-", id)}
	for _, a := range args {
		switch a {
		case "notice":
			ev.Notice = &drover.Notice{Cause: "spot interruption"}
		case "ailing":
			ev.Unhealthy = "disk fails"
		default:
			ev.Attempts = append(ev.Attempts, p.reports([]string{a})...)
		}
	}
	return ev
}

// sees applies a list's words to a sighting.
func (p *player) sees(s *engine.Sighting, said string) {
	for _, word := range strings.Split(said, ",") {
		switch word {
		case "stopped":
			s.Stopped = true
		case "kept":
			s.Kept = p.now
		case "reclaimed":
			s.Reclaimed = true
		case "no-capacity":
			s.Failed = &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: s.Market, Message: "allocation failed"}
		case "twin":
			s.ProviderID += "-twin"
		case "stopping":
			s.Ending = true
		default:
			if ago, ok := strings.CutPrefix(word, "kept:"); ok {
				s.Kept = p.now.Add(-p.duration(ago))
			} else if ago, ok := strings.CutPrefix(word, "ended:"); ok {
				s.Ended = p.now.Add(-p.duration(ago))
				continue
			}
			if name, ok := strings.CutPrefix(word, "type:"); ok {
				s.ProviderType, s.Type = name, name
				continue
			}
			if text, ok := strings.CutPrefix(word, "pool:"); ok {
				s.Pool, s.Template, _ = strings.Cut(text, "@")
				continue
			}
			if zone, ok := strings.CutPrefix(word, "zone:"); ok {
				s.Zone = zone
				continue
			}
			if user, ok := strings.CutPrefix(word, "owner:"); ok {
				s.Owner = drover.OwnerMark(user)
				continue
			}
			s.Idle = drover.IdleBehavior(word)
		}
	}
}

// given describes what an attempt gets that its job does not specify.
func (p *player) given(s engine.Start) (text string) {
	if s.Interrupted != 0 {
		text += fmt.Sprintf(", which was interrupted at %s", p.ago(s.Interrupted))
	}
	if need := p.jobs[s.Attempt.Job.Number].Shape.Need; s.Limits.Memory != need.Memory {
		text += ", with " + s.Limits.Memory.Rounded()
	}
	return text
}

// life returns the retry of a job that a request is for: the current one, unless "life=0" names another.
func (p *player) life(job int64, args []string) int64 {
	if text, ok := pairs(args)["life"]; ok {
		return p.number(text)
	}
	for _, j := range p.e.State().Jobs {
		if j.Number == job {
			return j.Again
		}
	}
	return 0
}

func (p *player) exit(args []string) drover.Exit {
	var x drover.Exit
	for key, value := range pairs(args) {
		switch key {
		case "code":
			x.Code = int(p.number(value))
		case "cause":
			x.Cause = strings.ReplaceAll(value, "_", " ")
		case "text":
			x.Text = strings.ReplaceAll(value, "_", " ")
		case "signal":
			x.Signal = value
		}
	}
	return x
}

// reports reads "1.0/1", or "1.0/1=0" for an attempt that has ended; a trailing ! means no proof, a ? another store's
// proof.
func (p *player) reports(args []string) (reports []engine.Report) {
	for _, a := range args {
		a, proof := strings.TrimRight(a, "!?"), map[byte]engine.Proof{'!': engine.ProofMissing, '?': engine.ProofForeign}[a[len(a)-1]]
		id, code, ended := strings.Cut(a, "=")
		r := engine.Report{ID: p.attempt(id), Proof: proof}
		if ended {
			r.Exit = &drover.Exit{Code: int(p.number(code))}
		}
		reports = append(reports, r)
	}
	return reports
}

func (p *player) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *player) job(text string) drover.JobID {
	id, err := drover.ParseJobID(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *player) attempt(text string) drover.AttemptID {
	id, err := drover.ParseAttemptID(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

func pairs(args []string) map[string]string {
	all := map[string]string{}
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		all[key] = value
	}
	return all
}
