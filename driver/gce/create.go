package gce

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// settleTime is how long the driver waits for an operation: within seconds Google reports that a zone or a quota is
// used up. A later failure shows up as an instance that is no longer listed.
const settleTime = 15 * time.Second

// waitPause is the pause after a wait that ended early, which Google's servers may do when they are overloaded.
const waitPause = time.Second

// resourceName matches the names that Google accepts.
var resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// longestName is well within the limit of a label; Google's own names may be shorter.
const longestName = 128

// demands are what Google requires of every create call.
var demands = kit.Demands{Longest: longestName, Image: "debian-cloud/family/debian-12"}

// Create creates an instance of the first candidate.
func (c *cloud) Create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return errs.Create(ctx, r, demands, c.insert)
}

// insert creates the instance, or finds the existing one with the name.
func (c *cloud) insert(ctx context.Context, r driver.CreateRequest) (in driver.Instance, err error) {
	first := r.Candidates[0]
	made, err := c.wanted(ctx, r, first)
	if err != nil {
		return in, err
	}
	token := c.token(r.Name, "insert")
	err = c.settle(ctx, "instances.insert", first.Zone, made, "requestId", token)
	switch kind := errs.KindOf(err); {
	case kind == drover.KindConflict:
		return c.recall(ctx, r, first.Zone, c.named(r.Name))
	case errs.CodeOf(err) != "" && errs.StatusOf(err) == 0 && (kind == drover.KindTransient || kind == drover.KindRateLimit):
		c.spent.Add(token) // the operation failed, and Google would answer a repeated call with it
	}
	made["zone"], made["status"] = first.Zone, "PROVISIONING"
	return c.instanceOf(as[resource](made)), err
}

// settle makes a call that begins an operation, waits a while for its end, and returns its result; nil if it is still
// running.
func (c *cloud) settle(ctx context.Context, call, about string, body any, asks ...string) error {
	var begun resource
	if err := c.api.do(ctx, call, about, body, &begun, asks...); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for begun.Status != "DONE" {
		var next resource
		err := c.api.do(short, "zoneOperations.wait", path.Base(begun.Zone)+"/"+begun.Name, nil, &next)
		switch kind := errs.KindOf(err); {
		case err == nil && next.Status != "DONE":
			select {
			case <-time.After(waitPause):
			case <-short.Done():
			}
		case err == nil:
			begun = next
		case ctx.Err() == nil && short.Err() != nil, kind == drover.KindRateLimit, kind == drover.KindNotFound: // it continues, or ended long ago
			return nil
		case kind != "" && kind != drover.KindTransient: // only the wait was refused
			return drover.Errorf(drover.KindTransient, "wait for operation %s: %v", begun.Name, err)
		default:
			return err
		}
	}
	return outcome(begun)
}

// token returns a call's request id: a UUID derived from the instance's name, so that Google recognizes a repeated
// call. A call whose operation failed for a moment is repeated with another one.
func (c *cloud) token(name, call string) (token string) {
	for token == "" || c.spent.Has(token) {
		sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name + "/" + call + token))
		sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80 // the form of a UUID derived from a name (RFC 9562), which UUID checks accept
		token = fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	return token
}

// named returns Google's name of an instance: Drover's own, if Google accepts it.
func (c *cloud) named(name string) string {
	if resourceName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(c.o.Fleet + "/" + name))
	return "drover-" + hex.EncodeToString(sum[:16])
}

// recall finds the instance that an earlier call created.
func (c *cloud) recall(ctx context.Context, r driver.CreateRequest, zone, name string) (driver.Instance, error) {
	found, err := c.api.get(ctx, zone+"/"+name, instanceFields)
	if errs.KindOf(err) == drover.KindNotFound {
		return driver.Instance{}, drover.Errorf(drover.KindTransient, "it existed a moment ago but is no longer visible")
	}
	if err != nil {
		return driver.Instance{}, err
	}
	in := c.instanceOf(found)
	if in.Tags[driver.TagFleet] != r.Tags[driver.TagFleet] || in.Tags[driver.TagName] != r.Tags[driver.TagName] {
		return driver.Instance{}, drover.Errorf(drover.KindInvalid, "zone %s contains instance %s, which belongs to someone else", zone, name)
	}
	return in, nil
}

// object is JSON, with the keys of the Compute Engine API.
type object = map[string]any

// wanted returns the instance for the API: the user's raw template with Drover's values on top.
func (c *cloud) wanted(ctx context.Context, r driver.CreateRequest, on driver.Candidate) (object, error) {
	switch {
	case !strings.HasPrefix(on.Zone, c.config.Region+"-"):
		return nil, drover.Errorf(drover.KindInvalid, "zone %s is not in region %s", on.Zone, c.config.Region)
	case on.ProviderType == "" || strings.ContainsAny(on.ProviderType+on.Zone, "/?#"):
		return nil, drover.Errorf(drover.KindInvalid, "%.80q in %.80q is not a valid instance type and zone", on.ProviderType, on.Zone)
	}
	given, err := readTemplate(r.Template)
	written, labelsErr := labelsOf(r.Tags)
	items, itemsErr := c.bootItems(r)
	if err := cmp.Or(err, labelsErr, itemsErr); err != nil {
		return nil, err
	}
	boot, err := c.bootDisk(ctx, r, on, written)
	if err != nil {
		return nil, err
	}
	made := object{"name": c.named(r.Name), "machineType": "zones/" + on.Zone + "/machineTypes/" + on.ProviderType}
	maps.Copy(made, given)
	delete(made, "deletionProtection") // or Drover could not delete the instance
	items = kit.MergeTags(as[metadata](given["metadata"]).values(), items)
	made["labels"] = kit.MergeTags(as[map[string]string](given["labels"]), c.config.Labels, written)
	made["metadata"] = object{"items": kit.EachTag(items, func(key, value string) object { return object{"key": key, "value": value} })}
	made["disks"] = append([]object{boot}, moreDisks(given)...)
	made["scheduling"] = c.scheduling(as[object](given["scheduling"]), on)
	c.setNetwork(made)
	if c.config.ServiceAccount != "" {
		made["serviceAccounts"] = []object{{"email": c.config.ServiceAccount, "scopes": []string{scope}}}
	}
	return made, nil
}

// moreDisks returns the template's disks. Google creates some of them with the instance and by default keeps them when it
// is gone. Drover has it delete them, unless the template sets autoDelete.
func moreDisks(given object) []object {
	all := as[[]object](given["disks"])
	for _, d := range all {
		if d["initializeParams"] != nil && d["autoDelete"] == nil {
			d["autoDelete"] = true
		}
	}
	return all
}

// bootDisk returns a disk as large as requested, and at least as large as the image. It is deleted with the instance.
func (c *cloud) bootDisk(ctx context.Context, r driver.CreateRequest, on driver.Candidate, written map[string]string) (object, error) {
	first := object{
		"sourceImage": on.Image, "labels": kit.MergeTags(c.config.Labels, written), "diskType": "zones/" + on.Zone + "/diskTypes/" + c.diskType(on.ProviderType),
	}
	if r.Disk > 0 {
		least, err := c.imageSize(ctx, on.Image)
		if err != nil {
			return nil, err
		}
		first["diskSizeGb"] = fmt.Sprint(max(r.Disk, least).WholeGiB())
	}
	return object{"boot": true, "autoDelete": true, "initializeParams": first}, nil
}

// scheduling sets the market and the maximum run time. Google stops an interrupted spot instance but keeps it, so that
// a list shows it; with max_run it is deleted in either case.
func (c *cloud) scheduling(given object, on driver.Candidate) object {
	s := object{}
	maps.Copy(s, given)
	if s["provisioningModel"] = "STANDARD"; on.Market == drover.Spot {
		s["provisioningModel"], s["instanceTerminationAction"] = "SPOT", "STOP"
	}
	if run := c.config.MaxRun; run > 0 {
		s["maxRunDuration"], s["instanceTerminationAction"] = object{"seconds": fmt.Sprint(int64(run.Seconds()))}, "DELETE"
	}
	if on.Market == drover.Spot || c.config.MaxRun > 0 {
		s["automaticRestart"] = false
	}
	if on.Market == drover.Spot || stays.MatchString(on.ProviderType) {
		s["onHostMaintenance"] = "TERMINATE"
	}
	return s
}

// stays are the types that cannot move to another host: those with GPUs and those for supercomputing.
var stays = regexp.MustCompile(`^(a[0-9]|g[2-9]|h[0-9])[a-z]*-`)

// setNetwork sets the network, unless the template does.
func (c *cloud) setNetwork(made object) {
	if len(as[[]any](made["networkInterfaces"])) == 0 {
		nic := object{"network": pathOf("global/networks/", c.config.Network)}
		if c.config.Subnetwork != "" {
			nic = object{"subnetwork": pathOf("regions/"+c.config.Region+"/subnetworks/", c.config.Subnetwork)}
		}
		if c.config.PublicAddress {
			nic["accessConfigs"] = []object{{"name": "public", "type": "ONE_TO_ONE_NAT"}}
		}
		made["networkInterfaces"] = []object{nic}
	}
	if len(c.config.NetworkTags) > 0 {
		made["tags"] = object{"items": c.config.NetworkTags}
	}
}

// pathOf returns a resource's path; a bare name becomes its end.
func pathOf(folder, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return folder + name
}

// instanceKeys are the keys of the API's Instance.
//
//go:embed instance.json
var instanceKeys string

// template has the keys of the API's Instance.
var template = kit.Template{
	Hint:  `write JSON with the keys of Instance in the Compute Engine API; for example, {"minCpuPlatform": "Intel Ice Lake"}`,
	Given: []string{"name", "machineType", "disks.boot", "scheduling.provisioningModel", "scheduling.preemptible"},
	Use:   "use the cloud's image, disk and disk_type keys, and the pool's type and market keys",
	Keys:  instanceKeys,
}

// readTemplate reads a raw template.
func readTemplate(raw string) (object, error) {
	var given object
	if err := template.Read(raw, &given); err != nil {
		return nil, err
	}
	for key := range as[metadata](given["metadata"]).values() {
		if key == "startup-script" || key == "user-data" {
			return nil, drover.Errorf(drover.KindInvalid, "the template's metadata sets %s, which Drover sets itself", key).
				WithHint("put its value in a file and write cloud_init: FILE; a script that begins with #cloud-boothook runs at every boot")
		}
	}
	return given, nil
}

// as converts a part of an object to a type that fits it.
func as[T any](part any) (read T) {
	text, _ := json.Marshal(part) // it was JSON before
	json.Unmarshal(text, &read)
	return read
}

// metadata is the metadata of an instance or a project, as instances read it.
type metadata struct{ Items []struct{ Key, Value string } }

// values returns the items by key.
func (m metadata) values() map[string]string {
	all := map[string]string{}
	for _, i := range m.Items {
		all[i.Key] = i.Value
	}
	return all
}

// initFolder is where an instance records which scripts have run.
const initFolder = "/var/lib/drover-init"

// bootItems returns what an instance reads at boot: the login key and the scripts. Neither the project's keys nor its
// members can log in.
func (c *cloud) bootItems(r driver.CreateRequest) (map[string]string, error) {
	all := map[string]string{"block-project-ssh-keys": "TRUE", "enable-oslogin": "FALSE", "enable-guest-attributes": "TRUE"}
	if r.PublicKey != "" {
		all["ssh-keys"] = c.config.User + ":" + strings.TrimSpace(r.PublicKey)
	}
	if c.config.Init == initCloud {
		all["user-data"] = kit.UserData(r).Reveal()
	} else if scripts := kit.Scripts(r); len(scripts) > 0 {
		all["startup-script"] = startup(initFolder, scripts)
	}
	for key, value := range all {
		if len(value) > maxUserData {
			return nil, drover.Errorf(drover.KindInvalid, "%s has %d bytes, more than Google's limit of %d", key, len(value), maxUserData)
		}
	}
	return all, nil
}

// startup returns a startup script, which Google runs at every boot. It runs each script at the first boot only, and
// those that begin with #cloud-boothook every time. They are in base64, since they may contain anything.
func startup(folder string, scripts []drover.Secret) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
dir=%s
mkdir -p "$dir" && chmod 700 "$dir" || exit 1
always() {
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	rm -f "$dir/$1"
}
once() {
	[ -e "$dir/$1.done" ] && return
	base64 -d >"$dir/$1" && chmod 700 "$dir/$1" && "$dir/$1"
	: >"$dir/$1.done"
	rm -f "$dir/$1"
}
`, folder)
	for i, s := range scripts {
		when, text := "once", s.Reveal()
		if hook, is := strings.CutPrefix(text, "#cloud-boothook"); is {
			_, rest, _ := strings.Cut(hook, "\n")
			when, text = "always", rest
		}
		fmt.Fprintf(&b, "%s %d <<'END'\n%s\nEND\n", when, i, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	return b.String()
}
