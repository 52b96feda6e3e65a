package engine_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
	"drover/internal/pack"
	"drover/internal/simtest"
)

var update = flag.Bool("update", false, "write the engine's decisions into the scenarios")

// Each file in testdata is a scenario: lines with events, each followed by the engine's decision, indented. Lines that
// begin with a hash are comments. "wait" prints why jobs wait, "explain" the result of ExplainSubject or, with "all",
// of ExplainAll, "result" how a job ended, "spent" the fleet's cost, "prices" the offerings and what blocks them;
// "moves" changes a price, "budget" sets a budget, and "budgets" prints the use of each. The second cloud is d: its
// answers name it.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the engine decides differently (-want +got):\n%s", diff)
			}
		})
	}
}

// player plays a scenario to an engine.
type player struct {
	t         *testing.T
	e         *engine.Engine
	disk      *simtest.Disk
	copied    *simtest.Disk
	now       drover.Time
	settings  engine.Settings
	offerings []drover.Offering
	pending   map[string]int64 // unanswered effects, by name
	problem   drover.Problem
	jobs      map[int64]engine.Job // as they were submitted
	ended     map[int64]engine.JobEnd
	lastList  drover.Time
	out       strings.Builder
	said      *reasons // nil unless reasons are collected
	events    int
	shown     shownGroups
}

func play(t *testing.T, script string) string {
	return playTo(t, script, nil)
}

// playTo plays a scenario and collects its reasons in said, unless that is nil.
func playTo(t *testing.T, script string, said *reasons) string {
	p := &player{t: t, said: said, disk: simtest.NewDisk(), now: drover.Time(1e18), pending: map[string]int64{}, jobs: map[int64]engine.Job{}, ended: map[int64]engine.JobEnd{}, settings: engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 4, MaxCreating: 10, ListInterval: time.Minute, Billing: drover.Billing{Least: time.Minute}}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
		},
	}}
	if testing.Short() {
		p.events = len(script) % 10 // so that scenarios differ in which events are checked
	}
	p.restart()
	for _, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue
		}
		fmt.Fprintln(&p.out, line)
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			p.line(fields[0], fields[1:])
			p.said.askAll(p)
		}
	}
	return p.out.String()
}

func (p *player) restart() {
	e, err := engine.New(p.disk.Begin())
	if err != nil {
		p.t.Fatal(err)
	}
	p.e = e
}

func (p *player) line(verb string, args []string) {
	switch verb {
	case "settings":
		p.set(args)
	case "offers":
		p.offers(args)
	case "budget":
		p.budget(args)
	case "pool":
		p.pool(args)
	case "groups":
		p.groups()
	case "pools":
		p.pools()
	case "begin":
		p.apply(engine.Configured{Settings: p.settings})
	case "catalogue":
		p.catalogue(args)
	case "catalogue-failed":
		p.apply(engine.Offered{Effect: p.effect("offers"), Cloud: "c", Err: &drover.Error{Kind: drover.ErrorKind(args[0]), Message: "no answer"}})
	case "reload":
		p.set(args)
		p.apply(engine.Configured{Settings: p.settings})
	case "explain":
		p.explain(strings.Join(args, ""))
	case "drained":
		p.print("%v, all seen: %v", p.e.Drained(), p.e.ListedTwice())
	case "restart":
		p.restart()
		clear(p.pending)
		p.apply(engine.Configured{Settings: p.settings})
	case "copy":
		p.copied = p.disk.Copy()
	case "put-back":
		newest := p.disk
		p.disk = p.copied.Copy()
		p.disk.Replace(newest, p.now)
		if slices.Contains(args, "alone") { // without the log of what succeeded
			p.disk.Forget()
		}
		p.line("restart", nil)
	case "after":
		p.after(args[0])
	case "away":
		p.now = p.now.Add(p.duration(args[0]))
	case "frozen":
		p.now = p.now.Add(p.duration(args[0]))
		p.apply(engine.Ticked{})
	case "moves":
		p.move(args)
	case "budgets":
		for _, b := range p.e.Budgets() {
			p.print("%s %s: %v spent, %v promised of %v, until %s", b.Scope, b.Window, b.Spent, b.Committed, b.Hard, p.ago(b.Until))
		}
	case "prices":
		for _, o := range p.e.Offers() {
			if o.Why == nil {
				p.print("%s at %v", o.Name(), o.Price)
			} else {
				p.print("%s at %v: %s: %s; until %s", o.Name(), o.Price, o.Why.Code, o.Why.Text, p.ago(o.Why.Until))
			}
		}
	case "result":
		end := p.ended[p.number(args[0])]
		p.print("%s: %s: %s", end.State, end.Reason.Code, end.Reason.Text)
	case "spent":
		p.print("%v", p.e.Status().Spent)
	case "wait":
		for _, w := range p.e.Status().Waiting {
			p.print("%d wait: %s: %s", w.Count, w.Reason.Code, w.Reason.Text)
		}
	default:
		p.apply(p.body(verb, args))
	}
}

// body returns the event that a line describes.
func (p *player) body(verb string, args []string) engine.Body {
	failed := func(at int) *drover.Error {
		err := &drover.Error{Kind: drover.ErrorKind(args[at]), Message: strings.ReplaceAll(args[at], "_", " ")}
		if err.Kind == drover.KindAuthentication {
			err.Hint = "sign in again"
		}
		if len(args) > at+1 {
			if d, isTime := strings.CutPrefix(args[at+1], "until="); isTime {
				err.RetryAt = p.now.Add(p.duration(d))
			} else {
				err.Scope = drover.Scope(args[at+1])
			}
		}
		if len(args) > at+2 {
			err.Market = drover.Market(strings.TrimPrefix(args[at+2], "market="))
		}
		return err
	}
	switch verb {
	case "submit":
		return engine.Submitted{Jobs: []engine.Job{p.submitted(args)}}
	case "retry":
		return engine.Submitted{Jobs: []engine.Job{p.disk.Retry(p.jobs[p.number(args[0])])}}
	case "cancel":
		b := engine.CancelAsked{Wish: 1, All: args[0] == "all", Reason: drover.Reason{Code: drover.ReasonCancelled, Text: "not wanted any more"}}
		if !b.All {
			b.Job = p.job(args[0])
			b.Again = p.life(b.Job.Number, args[1:])
		}
		return b
	case "close":
		return engine.CloseAsked{}
	case "drain-all":
		return engine.DrainAsked{Stop: strings.ReplaceAll(strings.Join(args, ""), "_", " ")}
	case "pause", "resume":
		words := strings.ReplaceAll(strings.Join(args, ""), "_", " ")
		return engine.QueueAsked{Wish: 1, Resume: verb == "resume", Reason: drover.Reason{Code: drover.ReasonPaused, Text: words}}
	case "hold", "drain", "release", "kill":
		words := strings.ReplaceAll(strings.Join(args[1:], ""), "_", " ")
		return engine.InstructAsked{Wish: 1, Instance: p.number(args[0]), Verb: drover.Verb(verb), Reason: drover.Reason{Text: words}}
	case "priority":
		return engine.PriorityAsked{Wish: 1, Job: p.number(args[0]), Again: p.life(p.number(args[0]), args[2:]), Priority: int(p.number(args[1]))}
	case "resize":
		return engine.ResizeAsked{Wish: 1, Pool: args[0], Count: int(p.number(args[1]))}
	case "group":
		return p.group(args)
	case "node":
		return engine.NodeTold{Instance: p.number(args[0]), Word: engine.NodeWord(args[1]), Why: strings.ReplaceAll(strings.Join(args[2:], ""), "_", " ")}
	case "tagged":
		return engine.Tagged{Effect: p.effect("tag " + args[0]), Instance: p.number(args[0])}
	case "tag-failed":
		return engine.Tagged{Effect: p.effect("tag " + args[0]), Instance: p.number(args[0]), Err: failed(1)}
	case "fired":
		return engine.Fired{Effect: p.effect("fire " + args[0]), Instance: p.number(args[0])}
	case "grown":
		return engine.DiskGrown{Effect: p.effect("grow " + args[0]), Instance: p.number(args[0])}
	case "grow-failed":
		return engine.DiskGrown{Effect: p.effect("grow " + args[0]), Instance: p.number(args[0]), Err: failed(1)}
	case "probe-failed":
		return engine.Connected{
			Effect: p.effect("connect " + args[0]), Instance: p.number(args[0]), HostKey: "key-" + args[0], Attempts: p.reports(args[1:]), ProbeFailed: "exit code 1",
		}
	case "solve":
		return engine.Solved{Effect: p.effect("solve"), Plan: pack.Solve(p.problem)}
	case "created":
		id := p.number(args[0])
		return engine.Created{Effect: p.effect("create " + args[0]), Instance: id, ProviderID: "vm-" + args[0], Taken: p.taken(id)}
	case "create-failed":
		return engine.CreateFailed{Effect: p.effect("create " + args[0]), Instance: p.number(args[0]), Tried: 1, Err: failed(1)}
	case "destroy-failed":
		return engine.Destroyed{Effect: p.effect("destroy " + args[0]), Instance: p.number(args[0]), Err: failed(1)}
	case "switched":
		return engine.Switched{Effect: p.effect("switch " + args[0]), Instance: p.number(args[0])}
	case "switch-failed":
		return engine.Switched{Effect: p.effect("switch " + args[0]), Instance: p.number(args[0]), Err: failed(1)}
	case "destroyed":
		return engine.Destroyed{Effect: p.effect("destroy " + args[0]), Instance: p.number(args[0])}
	case "connected":
		return p.connected(p.number(args[0]), args[1:])
	case "noticed":
		return engine.Noticed{Instance: p.number(args[0]), Notice: drover.Notice{Cause: "spot interruption"}}
	case "health": // its check fails if a text follows; with "others", another instance's has passed meanwhile
		b := engine.HealthChecked{Instance: p.number(args[0]), Others: slices.Contains(args, "others")}
		b.Text = strings.Join(slices.DeleteFunc(slices.Clone(args[1:]), func(word string) bool { return word == "others" }), " ")
		return b
	case "ailing":
		return engine.HealthReported{Instance: p.number(args[0]), Text: strings.Join(args[1:], " ")}
	case "connect-failed":
		return engine.ConnectFailed{Effect: p.effect("connect " + args[0]), Instance: p.number(args[0]), Err: failed(1)}
	case "disconnected":
		return engine.Disconnected{Instance: p.number(args[0]), Heard: p.now, Text: "reset"}
	case "started":
		return engine.Started{Effect: p.effect("start " + args[0]), Attempt: p.attempt(args[0])}
	case "start-failed":
		return engine.StartFailed{Effect: p.effect("start " + args[0]), Attempt: p.attempt(args[0]), Err: failed(1), Late: slices.Contains(args, "late")}
	case "exited":
		said := p.reports(args[:1])[0]
		on, _ := strconv.ParseInt(pairs(args[1:])["on"], 10, 64)
		return engine.Exited{Instance: on, Attempt: said.ID, Exit: p.exit(args[1:]), Proof: said.Proof}
	case "collected":
		return engine.Collected{Effect: p.effect("collect " + args[0]), Attempt: p.attempt(args[0])}
	case "collect-failed":
		return engine.Collected{Effect: p.effect("collect " + args[0]), Attempt: p.attempt(args[0]), Err: failed(1)}
	case "described":
		return p.described(args)
	case "listed":
		return p.listed(args)
	case "list-failed":
		return engine.Listed{Effect: p.effect("list"), Cloud: "c", Began: p.lastList, Err: failed(0)}
	}
	p.t.Fatalf("no such line: %s", verb)
	return nil
}

// described is a cloud's answer about an instance: it exists, or it is "gone", since "ended=1m" ago if the cloud knows;
// or the call "failed".
func (p *player) described(args []string) engine.Body {
	ev := engine.Described{Effect: p.effect("describe " + args[0]), Instance: p.number(args[0]), Began: p.now, Gone: slices.Contains(args, "gone")}
	if ago := pairs(args)["ended"]; ago != "" {
		ev.Ended = p.now.Add(-p.duration(ago))
	}
	if slices.Contains(args, "failed") {
		ev.Err = drover.Errorf(drover.KindTransient, "no answer")
	}
	return ev
}

// about names an effect that concerns a cloud.
func about(what, cloud string) string {
	if cloud == "c" {
		return what
	}
	return what + " " + cloud
}

// catalogue answers with the named cloud's offerings.
func (p *player) catalogue(args []string) {
	cloud, past := "c", p.past(args)
	if len(args) > 0 && past == nil {
		cloud = args[0]
	}
	var own []drover.Offering
	for _, o := range p.offerings {
		if o.Cloud == cloud {
			own = append(own, o)
		}
	}
	p.apply(engine.Offered{Effect: p.effect(about("offers", cloud)), Cloud: cloud, Offerings: own, Past: past})
}

// explain prints the explanations of a subject, or of everything.
func (p *player) explain(subject string) {
	all, _ := p.e.ExplainSubject(subject, 100)
	if subject == "all" {
		all = p.everything()
	}
	if len(all) == 0 {
		p.print("nothing is known of it")
		return
	}
	for _, x := range all {
		p.print("%s%s since %s", x.Subject, map[bool]string{true: fmt.Sprintf(" (%d wait)", x.Count)}[x.Waiting], p.ago(x.Since))
		for _, r := range x.Reasons {
			p.print("  %s: %s; since %s, until %s", r.Code, r.Text, p.ago(r.Since), p.ago(r.Until))
		}
	}
}

// ago formats a time relative to now.
func (p *player) ago(t drover.Time) string {
	if t == 0 {
		return "?"
	}
	return fmt.Sprintf("%+v", t.Sub(p.now).Round(time.Second))
}

// listed is a list: "+1" is new, "-1" is missing, and "+name" was not requested by the engine. "+1=hold" has that tag;
// "+1=stopped,reclaimed" and "+1=no-capacity" are other states. The second cloud's list begins with its name.
func (p *player) listed(args []string) engine.Body {
	cloud := "c"
	if len(args) > 0 && args[0] == "d" {
		cloud, args = args[0], args[1:]
	}
	ev := engine.Listed{Effect: p.effect(about("list", cloud)), Cloud: cloud, Began: p.lastList}
	for _, a := range args {
		name, said, _ := strings.Cut(a[1:], "=")
		if _, err := strconv.Atoi(name); err == nil {
			name = "f-n-" + name
		}
		id := "vm-" + strings.TrimPrefix(name, "f-n-")
		if a[0] == '-' {
			ev.Removed = append(ev.Removed, id)
			continue
		}
		o := p.offerings[0]
		ev.Added = append(ev.Added, engine.Sighting{
			ProviderID: id, Name: name, ProviderType: o.Type.ProviderType, Type: o.Type.Name, Zone: o.Zone, Market: o.Market, Price: o.Price, Created: p.now,
		})
		p.known(&ev.Added[len(ev.Added)-1])
		p.sees(&ev.Added[len(ev.Added)-1], said)
	}
	return ev
}

// offers reads "name:vcpus:price" or "name:vcpus:price:quota_group", with memory in proportion, or "d/name:vcpus:price"
// of the second cloud; "~name" is spot. jobs reads "NUMBER x=ELEMENTS cpu=1 after=1,2 priority=1 attempts=3 retry=75:2
// timeout=1h". reports reads "1.0/1" for a running attempt and "1.0/1=0" for one that ended with code 0. after lets
// time pass, waking the engine when it wants.
func (p *player) after(text string) {
	until := p.now.Add(p.duration(text))
	for {
		wake := p.e.State().Wake
		if wake == 0 || wake > until {
			break
		}
		p.now = max(p.now, wake)
		p.apply(engine.Ticked{})
		if next := p.e.State().Wake; next != 0 && next <= p.now {
			p.t.Fatalf("the engine wants to be woken at %v again, but it is %v", next, p.now)
		}
	}
	p.now = until
}

func (p *player) apply(body engine.Body) {
	ev := engine.Event{At: p.now, Body: body}
	var d engine.Decision
	if p.said == nil {
		d = p.decide(ev)
	} else {
		d = p.e.Apply(ev) // decisions are checked when reasons are not collected
	}
	p.checkRevision()
	if err := p.disk.Commit(context.Background(), d.Writes); err != nil {
		p.t.Fatal(err)
	}
	switch {
	case p.said == nil:
		p.checkWritten()
	case len(d.Writes)+len(d.Notes) > 0:
		p.said.hear(p.t, d.Writes, d.Notes)
	}
	for _, w := range d.Writes {
		if w.Ended != nil {
			p.ended[w.Ended.Number] = *w.Ended
		}
	}
	for _, r := range d.Replies() {
		if r.Err != nil {
			p.print("refused: “%s”", r.Err.Message)
		}
	}
	for _, f := range d.Effects {
		p.effects(f)
	}
	for _, n := range d.Notes {
		text := n.Text
		if n.Job != nil && n.Reason != nil && n.Reason.Text != "" && !strings.Contains(text, n.Reason.Text) {
			text += " (" + n.Reason.Text + ")"
		}
		p.print("“%s”", text)
	}
}

// effects prints an effect and remembers it for its answer.
func (p *player) effects(f engine.Effect) {
	switch {
	case f.ListOfferings != nil:
		p.asked(about("offers", f.ListOfferings.Cloud), f.ID)
	case f.ListInstances != nil:
		p.lastList = p.now
		p.asked(about("list", f.ListInstances.Cloud), f.ID)
	case f.Describe != nil:
		p.asked(fmt.Sprintf("describe %d", f.Describe.Instance), f.ID)
	case f.Create != nil:
		names := []string{}
		for _, o := range f.Create.Candidates {
			names = append(names, map[drover.Market]string{drover.Spot: "~"}[o.Market]+o.Type.Name)
		}
		p.pending[fmt.Sprintf("create %d", f.Create.Instance)] = f.ID
		p.print("create %d: %s%s", f.Create.Instance, strings.Join(names, " or "), inPool(*f.Create))
	case f.Destroy != nil:
		p.asked(fmt.Sprintf("destroy %d", f.Destroy.Instance), f.ID)
	case f.Switch != nil:
		p.asked(fmt.Sprintf("switch %d", f.Switch.Instance), f.ID)
		p.print("  %s", map[bool]string{true: "on", false: "off"}[f.Switch.On])
	case f.SetTags != nil:
		p.asked(fmt.Sprintf("tag %d", f.SetTags.Instance), f.ID)
		p.print("  as %s%s", f.SetTags.Idle, map[bool]string{true: ", stopped"}[f.SetTags.Stopped != 0])
	case f.GrowDisk != nil:
		p.asked(fmt.Sprintf("grow %d", f.GrowDisk.Instance), f.ID)
		p.print("  to %s", f.GrowDisk.Size)
	case f.Connect != nil:
		p.asked(fmt.Sprintf("connect %d", f.Connect.Instance), f.ID)
		for _, in := range p.e.State().Instances {
			if in.ID == f.Connect.Instance && in.Name != f.Connect.Name {
				p.print("  as %s", f.Connect.Name)
			}
		}
		if f.Connect.Probe {
			p.print("  with its boot probe")
		}
	case f.Disconnect != nil:
		p.print("disconnect %d", f.Disconnect.Instance)
	case f.Start != nil:
		p.pending["start "+f.Start.Attempt.String()] = f.ID
		p.print("start %v on %d%s", f.Start.Attempt, f.Start.Instance, p.given(*f.Start))
	case f.Stop != nil:
		p.print("stop %v on %d", f.Stop.Attempt, f.Stop.Instance)
	case f.Collect != nil:
		p.asked("collect "+f.Collect.Attempt.String(), f.ID)
	case f.Forget != nil:
		p.print("forget %v on %d", f.Forget.Attempt, f.Forget.Instance)
	case f.Fire != nil:
		if f.Fire.Hook == drover.HookBroken {
			p.pending[fmt.Sprint("fire ", f.Fire.Instance)] = f.ID
		}
		whose := map[bool]string{true: " of " + f.Fire.Pool}[f.Fire.Pool != ""]
		p.print("fire %s %s%s: %s", f.Fire.Hook, cmp.Or(f.Fire.Name, f.Fire.Cloud), whose, f.Fire.Reason.Code)
	case f.Solve != nil:
		p.pending["solve"], p.problem = f.ID, *f.Solve
		for _, d := range f.Solve.Demands {
			expected := ""
			if d.Time > 0 && d.Time != time.Hour { // an hour is assumed when nothing is known
				expected = fmt.Sprint(", expected to take ", d.Time)
			}
			p.print("solve %d × %v vCPUs%s, room for %d", d.Count, d.Shape.Need.CPU, expected, f.Solve.Room)
		}
	}
}

func (p *player) asked(what string, id int64) {
	p.pending[what] = id
	p.print("%s", what)
}

func (p *player) effect(what string) int64 {
	id, ok := p.pending[what]
	if !ok {
		p.t.Fatalf("%s\nno effect %q to answer; only %v", p.out.String(), what, slices.Sorted(maps.Keys(p.pending)))
	}
	delete(p.pending, what)
	return id
}

func (p *player) print(format string, args ...any) { fmt.Fprintf(&p.out, "    "+format+"\n", args...) }

func (p *player) taken(id int64) drover.Offering {
	for _, in := range p.e.Instances() {
		if in.ID == id && len(in.Candidates) > 0 {
			return in.Candidates[0]
		}
	}
	return p.offerings[0]
}

func (p *player) everything() []drover.Explanation {
	all, left := p.e.ExplainAll(100)
	if left > 0 {
		p.print("and %d more", left)
	}
	return all
}
