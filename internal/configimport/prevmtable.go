package configimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"drover"
)

// fields are the entries of a document, whose keys may be in any case. What is taken is there no more.
type fields map[string]any

// take removes the value of a key, nil if there is none.
func (f fields) take(key string) any {
	for k, v := range f {
		if strings.EqualFold(k, key) {
			delete(f, k)
			return v
		}
	}
	return nil
}

// texts takes a list of texts.
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

func (f fields) number(key string) int {
	n, _ := f.take(key).(float64)
	return int(n)
}

// object takes an object; an empty one if there is none.
func (f fields) object(key string) fields {
	o, _ := f.take(key).(map[string]any)
	return o
}

// probeInterval is Drover's default; a cloud is listed less often than its instances are asked.
const probeInterval = 10 * time.Second

// prevmtable reads prevmtable's document: one pool of preemptible instances in zones of GCE.
func (w *writer) prevmtable(data []byte) error {
	document, err := parseLenient(string(data))
	if err != nil {
		return err
	}
	o, is := document.(map[string]any)
	if !is {
		return drover.Errorf(drover.KindInvalid, "the document is no object")
	}
	old := fields(o)
	zones, count := old.texts("AllowedZones"), old.number("TargetVMCount")
	if len(zones) == 0 {
		return drover.Errorf(drover.KindInvalid, "AllowedZones is missing: it says where instances may be")
	}
	prefix := old.text("Prefix")
	w.fleet = nameOf(prefix, "prevmtable")
	if prefix != "" {
		w.notef("Prefix: the names of instances begin with the fleet's name, %s, and not with %q", w.fleet, prefix)
	}
	instance := old.object("Instance")
	made := w.instance(instance)
	w.gceClouds(zones, count, w.listInterval(old.number("SecondsToRest")), made)
	w.pool(old, zones, count, made)
	w.oldHooks(old.object("Hooks"))
	for _, key := range slices.Sorted(maps.Keys(old)) {
		w.notef("%s: not known, and not carried over", key)
	}
	return nil
}

// nameOf is a text as the name of a fleet or pool, or another if it cannot be one.
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

// made is what an instance's template says in words of Drover's.
type made struct {
	cloud  yaml.MapSlice // keys of the cloud
	typ    string
	market drover.Market
	init   bool // there is a script for the first boot
}

const (
	initFile     = "startup-script.sh"
	templateFile = "template.json"
)

// instance takes what Drover has keys for out of an instance's template. The rest stays a template.
func (w *writer) instance(in fields) (m made) {
	in.take("name") // Drover names instances
	m.typ = path.Base(in.text("machineType"))
	m.market = drover.OnDemand
	if scheduling := in.object("scheduling"); scheduling != nil {
		if preemptible, _ := scheduling.take("preemptible").(bool); preemptible || strings.EqualFold(scheduling.text("provisioningModel"), "SPOT") {
			m.market = drover.Spot
		}
		scheduling.take("automaticRestart") // Drover replaces what ends
		w.keep(in, "scheduling", scheduling)
	}
	w.bootDisk(in, &m)
	if tags := in.object("tags"); tags != nil {
		m.cloud = append(m.cloud, pair("network_tags", tags.texts("items")))
	}
	w.startup(in, &m)
	if len(in) == 0 {
		return m
	}
	text, err := json.MarshalIndent(in, "", "  ")
	if err == nil && w.file(templateFile, string(text)+"\n", "Instance: "+strings.Join(slices.Sorted(maps.Keys(in)), ", ")) {
		m.cloud = append(m.cloud, pair("template", "./"+templateFile))
	}
	return m
}

// keep puts back what is left of an object.
func (w *writer) keep(in fields, key string, left fields) {
	if len(left) > 0 {
		in[key] = map[string]any(left)
	}
}

// bootDisk takes the image and the boot disk.
func (w *writer) bootDisk(in fields, m *made) {
	disks, _ := in.take("disks").([]any)
	var others []any
	for _, d := range disks {
		disk, _ := d.(map[string]any)
		if boot, _ := fields(disk).take("boot").(bool); !boot {
			others = append(others, d)
			continue
		}
		params := fields(disk).object("initializeParams")
		if image := params.text("sourceImage"); image != "" {
			m.cloud = append(m.cloud, pair("image", imageOf(image)))
		}
		if size := params.take("diskSizeGb"); size != nil {
			m.cloud = append(m.cloud, pair("disk", fmt.Sprint(size)+"Gi"))
		}
		if kind := params.text("diskType"); kind != "" {
			m.cloud = append(m.cloud, pair("disk_type", path.Base(kind)))
		}
	}
	if len(others) > 0 {
		in["disks"] = others
	}
}

// imageOf is an image's URL as PROJECT/NAME or PROJECT/family/NAME.
func imageOf(url string) string {
	_, image, found := strings.Cut(url, "projects/")
	if !found {
		return strings.TrimPrefix(url, "global/images/")
	}
	return strings.Replace(image, "/global/images/", "/", 1)
}

// startup takes the startup script out of the metadata.
func (w *writer) startup(in fields, m *made) {
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
		if m.init = w.file(initFile, strings.TrimRight(script, "\n")+"\n", "startup-script"); m.init {
			w.notef("startup-script: it is run at an instance's first boot alone, and was run at each")
		}
	}
	if len(others) > 0 {
		metadata["items"] = others
	}
	w.keep(in, "metadata", metadata)
}

// listInterval is how often clouds are listed; 0: Drover's default.
func (w *writer) listInterval(seconds int) time.Duration {
	rest := time.Duration(seconds) * time.Second
	if rest > 0 && rest <= probeInterval {
		w.notef("SecondsToRest: raised from %v to %v, since list_interval must be more than probe_interval", rest, probeInterval+time.Second)
		return probeInterval + time.Second
	}
	return rest
}

// gceClouds are one cloud for each region of the zones.
func (w *writer) gceClouds(zones []string, count int, list time.Duration, m made) {
	regions := map[string][]string{}
	for _, zone := range zones {
		at := strings.LastIndex(zone, "-")
		regions[zone[:max(0, at)]] = append(regions[zone[:max(0, at)]], zone)
	}
	for _, region := range slices.Sorted(maps.Keys(regions)) {
		cloud := yaml.MapSlice{pair("driver", "gce"), pair("region", region), pair("zones", regions[region]), pair("max_instances", max(2, 2*count))}
		if list > 0 {
			cloud = append(cloud, pair("list_interval", list.String()))
		}
		w.clouds = append(w.clouds, pair(region, append(cloud, m.cloud...)))
	}
}

// pool is the one pool there was.
func (w *writer) pool(old fields, zones []string, count int, m made) {
	p := yaml.MapSlice{pair("size", count), pair("zones", zones)}
	if m.typ != "" && m.typ != "." {
		p = append(p, pair("type", m.typ))
	}
	p = append(p, pair("market", string(m.market)), pair("login", string(drover.LoginNone)))
	if seconds := old.number("SecondsForExhaustion"); seconds > 0 {
		p = append(p, pair("exhaustion_cooldown", (time.Duration(seconds)*time.Second).String()))
	}
	if m.init {
		p = append(p, pair("cloud_init", "./"+initFile))
	}
	w.pools = append(w.pools, pair(w.fleet, p))
}

// oldHooks says what becomes of hooks: their scripts are not in the document.
func (w *writer) oldHooks(hooks fields) {
	for _, h := range []struct{ old, hook string }{{"Create", "created"}, {"Delete", "destroyed"}, {"Vanished", "vanished"}, {"Exhausted", "exhausted"}} {
		if attribute := hooks.text(h.old); attribute != "" {
			w.notef("Hooks.%s: save the script in the project's metadata attribute %s as a file, chmod +x it, and write hooks: {%s: ./FILE} for the pool", h.old, attribute, h.hook)
		}
	}
}
