package configimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"drover"
)

// fields are the entries of a document, with keys in any case. Reading an entry removes it.
type fields map[string]any

// take removes and returns the value of a key, nil if there is none.
func (f fields) take(key string) any {
	for k, v := range f {
		if strings.EqualFold(k, key) {
			delete(f, k)
			return v
		}
	}
	return nil
}

// texts takes a list of strings.
func (f fields) texts(key string) (all []string) {
	list, _ := f.take(key).([]any)
	for _, v := range list {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func (f fields) text(key string) string {
	s, _ := f.take(key).(string)
	return s
}

// object takes an object; it returns an empty one if there is none.
func (f fields) object(key string) fields {
	if o, is := f.take(key).(map[string]any); is {
		return o
	}
	return fields{}
}

// whole returns a whole number below a million. Google's API writes 64-bit numbers, such as diskSizeGb, as text.
func whole(v any) (n int, ok bool) {
	n, err := strconv.Atoi(fmt.Sprint(v))
	return n, err == nil && n >= 0 && n < 1_000_000
}

// put puts the rest of an object back.
func (f fields) put(key string, left fields) {
	if len(left) > 0 {
		f[key] = map[string]any(left)
	}
}

// probeInterval is Drover's default; a cloud must be listed less often than its instances are probed.
const probeInterval = 10 * time.Second

// DefaultPrefix is the prefix of instances' names if the document has none.
const DefaultPrefix = "prevmtable-"

// Prevmtable is the only pool of a prevmtable document, in Drover's terms.
type Prevmtable struct {
	Zones    []string
	Count    int
	Prefix   string                 // of its instances' names; never empty
	Listing  time.Duration          // how often clouds are listed; 0: Drover's default
	Cooldown time.Duration          // 0: Drover's default
	Hooks    map[drover.Hook]string // the attributes of the project that hold their scripts
	Type     string
	Market   drover.Market
	Image    string
	Disk     drover.Bytes // 0: the image's size
	DiskType string
	Startup  string   // a script that runs at every boot, including its interpreter line; empty: none
	Template string   // everything else about its instances, as JSON; empty: nothing
	Notes    []string // what was not carried over, or only with changes, in order
}

// ReadPrevmtable parses prevmtable's document: one pool of instances in zones of GCE.
func ReadPrevmtable(text string) (Prevmtable, error) {
	document, err := parseLenient(text)
	if err != nil {
		return Prevmtable{}, err
	}
	old, is := document.(map[string]any)
	if !is {
		return Prevmtable{}, drover.Errorf(drover.KindInvalid, "the document is not an object")
	}
	p := Prevmtable{Hooks: map[drover.Hook]string{}}
	if err := p.read(old); err != nil {
		return Prevmtable{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		p.notef("%s: unknown, and not converted", key)
	}
	return p, nil
}

func (p *Prevmtable) notef(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func (p *Prevmtable) read(old fields) error {
	rest, cooldown := old.take("SecondsToRest"), old.take("SecondsForExhaustion")
	if p.Zones = old.texts("AllowedZones"); len(p.Zones) == 0 {
		return drover.Errorf(drover.KindInvalid, "AllowedZones is missing, so Drover cannot tell where it may create instances")
	}
	var ok bool
	if p.Count, ok = whole(old.take("TargetVMCount")); !ok {
		return drover.Errorf(drover.KindInvalid, "TargetVMCount is missing, or is not a valid number of instances")
	}
	p.prefix(old.text("Prefix"))
	p.listing(p.seconds("SecondsToRest", rest))
	p.Cooldown = p.seconds("SecondsForExhaustion", cooldown)
	hooks := old.object("Hooks")
	for key, hook := range map[string]drover.Hook{
		"Create": drover.HookCreated, "Delete": drover.HookDestroyed, "Vanished": drover.HookVanished, "Exhausted": drover.HookExhausted,
	} {
		if attribute := hooks.text(key); attribute != "" {
			p.Hooks[hook] = attribute
		}
	}
	for _, key := range slices.Sorted(maps.Keys(hooks)) {
		p.notef("Hooks.%s: unknown, and not converted", key)
	}
	return p.instance(old.object("Instance"))
}

func (p *Prevmtable) seconds(key string, v any) time.Duration {
	n, ok := whole(v)
	if v != nil && !ok {
		p.notef("%s: %v is not a valid number of seconds, and not converted", key, v)
		return 0
	}
	return time.Duration(n) * time.Second
}

// prefixes matches prefixes that are valid in every cloud.
var prefixes = regexp.MustCompile(`^[a-z][a-z0-9-]{0,15}$`)

func (p *Prevmtable) prefix(old string) {
	if p.Prefix = old; prefixes.MatchString(old) {
		return
	}
	p.Prefix = DefaultPrefix
	p.notef("Prefix: %q is not allowed in every cloud, so names begin with %s", old, p.Prefix)
}

func (p *Prevmtable) listing(rest time.Duration) {
	if p.Listing = rest; rest > 0 && rest <= probeInterval {
		p.Listing = probeInterval + time.Second
		p.notef("SecondsToRest: raised from %v to %v, since list_interval must be longer than probe_interval", rest, p.Listing)
	}
}

// instance takes out of an instance's template what Drover has keys for. The rest stays a template.
func (p *Prevmtable) instance(in fields) error {
	in.take("name") // Drover names instances
	if p.Type = path.Base(in.text("machineType")); p.Type == "." {
		return drover.Errorf(drover.KindInvalid, "Instance.machineType is missing")
	}
	if sharedCore.MatchString(p.Type) {
		p.notef("machineType: types with shared vCPUs, such as %s, are offered only if they are listed under the cloud's types with their price", p.Type)
	}
	p.scheduling(in)
	p.bootDisk(in)
	p.startup(in)
	if len(in) == 0 {
		return nil
	}
	text, err := json.MarshalIndent(in, "", "  ")
	p.Template = string(text) + "\n"
	return err
}

// sharedCore matches the types that Drover's driver does not offer by default.
var sharedCore = regexp.MustCompile(`^(f1-micro|g1-small|e2-(micro|small|medium))$`)

func (p *Prevmtable) scheduling(in fields) {
	p.Market = drover.OnDemand
	scheduling := in.object("scheduling")
	preemptible, _ := scheduling.take("preemptible").(bool)
	if strings.EqualFold(scheduling.text("provisioningModel"), "SPOT") || preemptible {
		p.Market = drover.Spot
	}
	scheduling.take("automaticRestart") // Drover replaces ended instances
	in.put("scheduling", scheduling)
}

// bootDisk takes the image and the boot disk's size.
func (p *Prevmtable) bootDisk(in fields) {
	disks, _ := in.take("disks").([]any)
	var others []any
	for _, d := range disks {
		disk, _ := d.(map[string]any)
		if boot, _ := fields(disk).take("boot").(bool); !boot {
			others = append(others, d)
			continue
		}
		params := fields(disk).object("initializeParams")
		p.Image = imageOf(params.text("sourceImage"))
		size := params.take("diskSizeGb")
		if n, ok := whole(size); ok {
			p.Disk = drover.Bytes(n) * drover.GiB
		} else if size != nil {
			p.notef("disks: diskSizeGb %v is not a valid size, and not converted", size)
		}
		if kind := params.text("diskType"); kind != "" {
			p.DiskType = path.Base(kind)
		}
		p.bootRest(disk, params)
	}
	if len(others) > 0 {
		in["disks"] = others
	}
}

// bootRest notes the boot disk's other settings. Drover's boot disk is writable and is deleted with its instance.
func (p *Prevmtable) bootRest(disk, params fields) {
	if autoDelete, is := disk.take("autoDelete").(bool); is && !autoDelete {
		p.notef("disks: autoDelete was off, but Drover deletes the boot disk with its instance")
	}
	disk.take("mode")
	disk.take("type")
	maps.Copy(disk, params)
	for _, key := range slices.Sorted(maps.Keys(disk)) {
		p.notef("disks: the boot disk's %s is not converted", key)
	}
}

// imageOf converts an image's URL to PROJECT/NAME or PROJECT/family/NAME.
func imageOf(url string) string {
	_, image, found := strings.Cut(url, "projects/")
	if !found {
		return strings.TrimPrefix(url, "global/images/")
	}
	return strings.Replace(image, "/global/images/", "/", 1)
}

// startup takes the startup script out of the metadata.
func (p *Prevmtable) startup(in fields) {
	metadata := in.object("metadata")
	items, _ := metadata.take("items").([]any)
	var others []any
	for _, i := range items {
		item, _ := i.(map[string]any)
		key, script := fields(maps.Clone(item)).text("key"), fields(maps.Clone(item)).text("value")
		if key != "startup-script" {
			others = append(others, i)
			continue
		}
		if !strings.HasPrefix(script, "#!") {
			script = "#!/bin/sh\n" + script
		}
		p.Startup = "#cloud-boothook\n" + strings.TrimRight(script, "\n") + "\n"
	}
	if len(others) > 0 {
		metadata["items"] = others
	}
	in.put("metadata", metadata)
}

// Files that the configuration names.
const (
	initFile     = "startup-script.sh"
	templateFile = "template.json"
)

func (w *writer) prevmtable(data []byte) error {
	p, err := ReadPrevmtable(string(data))
	if err != nil {
		return err
	}
	w.fleet = nameOf(p.Prefix, "prevmtable")
	w.result.Notes = append(w.result.Notes, p.Notes...)
	for _, zone := range p.Zones {
		if !strings.Contains(zone, "-") {
			return drover.Errorf(drover.KindInvalid, "AllowedZones: %.40q is not a GCE zone", zone)
		}
	}
	w.gceClouds(p)
	w.pools = append(w.pools, pair(w.fleet, w.pool(p)))
	return nil
}

// PoolName returns the name of the pool that an attribute describes.
func PoolName(attribute string) string { return nameOf(attribute, "prevmtable") }

// nameOf converts a text to the name of a fleet or pool; it returns otherwise if that is impossible.
func nameOf(text, otherwise string) string {
	keep := func(r rune) rune {
		if r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	name := strings.Trim(strings.Map(keep, text), "-0123456789")
	if name = name[:min(len(name), 32)]; name == "" {
		return otherwise
	}
	return name
}

// gceClouds adds one cloud for each region of the zones.
func (w *writer) gceClouds(p Prevmtable) {
	regions := map[string][]string{}
	for _, zone := range p.Zones {
		region := zone[:strings.LastIndex(zone, "-")]
		regions[region] = append(regions[region], zone)
	}
	for _, region := range slices.Sorted(maps.Keys(regions)) {
		cloud := yaml.MapSlice{pair("driver", "gce"), pair("region", region), pair("zones", regions[region]), pair("max_instances", max(2, 2*p.Count))}
		if p.Listing > 0 {
			cloud = append(cloud, pair("list_interval", p.Listing.String()))
		}
		if p.DiskType != "" {
			cloud = append(cloud, pair("disk_type", p.DiskType))
		}
		w.clouds = append(w.clouds, pair(region, cloud))
	}
}

// pool returns the document's only pool.
func (w *writer) pool(p Prevmtable) yaml.MapSlice {
	all := yaml.MapSlice{pair("size", p.Count), pair("zones", p.Zones), pair("type", p.Type), pair("market", string(p.Market)), pair("name_prefix", p.Prefix),
		pair("login", string(drover.LoginNone))}
	if p.Image != "" {
		all = append(all, pair("image", p.Image))
	}
	if p.Disk > 0 {
		all = append(all, pair("disk", fmt.Sprintf("%dGi", p.Disk/drover.GiB)))
	}
	if p.Cooldown > 0 {
		all = append(all, pair("exhaustion_cooldown", p.Cooldown.String()))
	}
	if p.Startup != "" && w.file(initFile, p.Startup, "startup-script") {
		all = append(all, pair("cloud_init", "./"+initFile))
	}
	if p.Template != "" && w.file(templateFile, p.Template, "Instance: everything except machineType, boot disk, scheduling and startup-script") {
		all = append(all, pair("template", "./"+templateFile))
	}
	if len(p.Hooks) > 0 {
		hooks := yaml.MapSlice{}
		for _, hook := range slices.Sorted(maps.Keys(p.Hooks)) {
			hooks = append(hooks, pair(string(hook), fmt.Sprintf("attribute:%v/%s", w.clouds[0].Key, p.Hooks[hook])))
		}
		all = append(all, pair("hooks", hooks))
	}
	return all
}
