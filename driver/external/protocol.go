package external

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"drover"
	"drover/driver"
)

// version is the protocol's version. It changes when a correct program would no longer be correct.
const version = 1

// request is a request to a program.
type request struct {
	Version int               `json:"version"`
	ID      int64             `json:"id"`
	Call    string            `json:"call"`
	Cloud   string            `json:"cloud"`
	Fleet   string            `json:"fleet"`
	Folder  string            `json:"folder"`
	Options map[string]string `json:"options"`
	Args    any               `json:"args"`
}

// The arguments of the calls.
type (
	createArgs struct {
		Name       string            `json:"name"`
		Candidates []driverCandidate `json:"candidates"`
		Disk       drover.Bytes      `json:"disk_bytes"`
		Tags       map[string]string `json:"tags"`
		Template   string            `json:"template,omitempty"`
		UserData   string            `json:"user_data,omitempty"`
		Scripts    []string          `json:"scripts,omitempty"`
		HostKey    string            `json:"host_key,omitempty"`
		PublicKey  string            `json:"public_key"`
	}
	driverCandidate struct {
		Type   string        `json:"type"`
		Zone   string        `json:"zone"`
		Market drover.Market `json:"market"`
		Arch   drover.Arch   `json:"arch,omitempty"`
		Image  string        `json:"image,omitempty"`
	}
	listArgs struct {
		Tags map[string]string `json:"tags"`
	}
	instanceArgs struct {
		ID   string            `json:"id"`
		Tags map[string]string `json:"tags,omitempty"`
		Disk drover.Bytes      `json:"disk_bytes,omitempty"`
		Key  string            `json:"host_key,omitempty"`

		Output *string `json:"output,omitempty"` // of the command that verify_host_key requested; nil: it has not requested one
	}
	attributeArgs struct {
		Name string `json:"name"`
	}
	imageArgs struct {
		Ref  string      `json:"ref"`
		Arch drover.Arch `json:"arch,omitempty"`
	}
)

// reply is a program's reply.
type reply struct {
	ID     int64           `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *failure        `json:"error"`
}

// failure is an error as a program reports it.
type failure struct {
	Kind       drover.ErrorKind `json:"kind"`
	Scope      drover.Scope     `json:"scope"`
	Market     drover.Market    `json:"market"`
	RetryAfter float64          `json:"retry_after_seconds"`
	Message    string           `json:"message"`
}

// The results of the calls.
type (
	opened struct {
		driver.Capabilities
		Calls         []string `json:"calls"`
		ListLag       string   `json:"list_lag"`
		BillingLeast  float64  `json:"billing_least_seconds"`
		BillingPeriod float64  `json:"billing_period_seconds"`
	}
	created struct {
		Instance instance `json:"instance"`
	}
	described struct {
		Instance *instance  `json:"instance"`
		Ended    *time.Time `json:"ended"` // if there is no instance: it existed, and has ended
	}
	verified struct {
		Run string `json:"run"` // a command whose output is needed first
	}
	listed struct {
		Instances *[]instance `json:"instances"`
	}
	offered struct {
		Offerings *[]offering `json:"offerings"`
	}
	pictured struct {
		Images *[]image `json:"images"`
	}
	attribute struct {
		Value *string `json:"value"`
	}
	leftovers struct {
		Leftovers *[]stray `json:"strays"`
	}

	instance struct {
		ID        string            `json:"id"`
		Tags      map[string]string `json:"tags"`
		Type      string            `json:"type"`
		Zone      string            `json:"zone"`
		Market    drover.Market     `json:"market"`
		State     driver.State      `json:"state"`
		Reclaimed bool              `json:"reclaimed"`
		Failed    *failure          `json:"failed"`
		Private   string            `json:"private"`
		Public    string            `json:"public"`
		User      string            `json:"user"`
		Created   *time.Time        `json:"created"`
		Ended     *time.Time        `json:"ended"`
	}
	offering struct {
		Type         string        `json:"type"`
		ProviderType string        `json:"provider_type"`
		Zone         string        `json:"zone"`
		Market       drover.Market `json:"market"`
		VCPUs        json.Number   `json:"vcpus"`
		Memory       drover.Bytes  `json:"memory_bytes"`
		Disk         drover.Bytes  `json:"disk_bytes"`
		GPUs         int           `json:"gpus"`
		Arch         drover.Arch   `json:"arch"`
		Price        json.Number   `json:"price_usd_per_hour"`
		DiskPrice    json.Number   `json:"disk_price_usd_per_hour"`
		QuotaGroup   string        `json:"quota_group"`
	}
	image struct {
		ID      string      `json:"id"`
		Name    string      `json:"name"`
		Arch    drover.Arch `json:"arch"`
		Created *time.Time  `json:"created"`
	}
	stray struct {
		Kind    string            `json:"kind"`
		ID      string            `json:"id"`
		Tags    map[string]string `json:"tags"`
		Created *time.Time        `json:"created,omitempty"`
		Shared  bool              `json:"shared,omitempty"`
	}
)

// decode reads the reply to the request with this id into result, or returns the error that the program reports.
func decode(line []byte, id int64, result any) error {
	var r reply
	if err := unmarshal(line, &r); err != nil {
		e := unclear("%v in %.100q", err, line)
		if !json.Valid(line) {
			e = e.WithHint("only the reply may go to standard output; write everything else to standard error")
		}
		return e
	}
	switch {
	case r.ID != 0 && r.ID != id:
		return unclear("it answers request %d, not %d", r.ID, id)
	case r.Error != nil:
		return r.Error.classify()
	case len(r.Result) == 0 || bytes.Equal(r.Result, []byte("null")):
		return unclear("it has neither a result nor an error")
	case result == nil:
		return nil
	}
	if err := unmarshal(r.Result, result); err != nil {
		return unclear("%v in %.100q", err, r.Result)
	}
	return nil
}

// unmarshal reads one JSON value with nothing after it. It ignores fields that a later version of the protocol adds.
func unmarshal(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	err := d.Decode(into)
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is of the wrong type (%s)", cmp.Or(t.Field, "it"), t.Value)
	}
	if t, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Errorf("%q is not a time; write it like 2026-02-03T04:05:06Z", t.Value)
	}
	if err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { // More returns false before a closing bracket
		return errors.New("there is extra data after the JSON value")
	}
	return nil
}

// isError reports whether a reply is an error.
func isError(line []byte) bool {
	var r reply
	return unmarshal(line, &r) == nil && r.Error != nil
}

// check sets safe values for what a program left out, and refuses unknown values.
func (o opened) check() (driver.Capabilities, error) {
	can := o.Capabilities
	if can.HostKeys == "" {
		can.HostKeys = driver.HostKeysPlanted
	}
	if can.PowerOff == "" {
		can.PowerOff = driver.PowerOffStops
	}
	if can.Init == "" {
		can.Init = driver.InitShell
	}
	for _, word := range []struct {
		key, is string
		known   []string
	}{
		{"host_keys", string(can.HostKeys), []string{string(driver.HostKeysPlanted), string(driver.HostKeysVerified), string(driver.HostKeysSecret)}},
		{"power_off", string(can.PowerOff), []string{string(driver.PowerOffEnds), string(driver.PowerOffStops)}},
		{"init", string(can.Init), []string{string(driver.InitShell), string(driver.InitCloud)}},
		{"notices", string(can.Notices), []string{string(driver.NoticesEC2), string(driver.NoticesGCE), string(driver.NoticesAzure), string(driver.NoticesFile)}},
	} {
		if word.is != "" && !slices.Contains(word.known, word.is) {
			return can, fmt.Errorf("%s is %.40q, which is not one of %s", word.key, word.is, strings.Join(word.known, ", "))
		}
	}
	for _, b := range []struct {
		key  string
		is   float64
		into *time.Duration
	}{
		{"billing_least_seconds", o.BillingLeast, &can.Billing.Least},
		{"billing_period_seconds", o.BillingPeriod, &can.Billing.Period},
	} {
		if most := drover.MaxBillingPeriod.Seconds(); !(b.is >= 0 && b.is <= most) {
			return can, fmt.Errorf("%s is %v, which is not between 0 and %v", b.key, b.is, most)
		}
		*b.into = time.Duration(b.is * float64(time.Second))
	}
	lag, err := o.lag()
	if err != nil {
		return can, err
	}
	can.ListLag, can.Describe = lag, slices.Contains(o.Calls, callDescribe)
	for _, call := range o.Calls {
		if !slices.Contains([]string{callOfferings, callImages, callVerify, callStrays, callDescribe, callAttribute}, call) {
			return can, fmt.Errorf("calls lists %.40q, which is not a known call", call)
		}
	}
	if can.StopSaves && !can.StopStart {
		return can, errors.New("stop_saves is true, but stop_start is not")
	}
	if can.HostKeys == driver.HostKeysVerified && !slices.Contains(o.Calls, callVerify) {
		return can, fmt.Errorf("host_keys is \"verified\", but calls does not contain %q", callVerify)
	}
	if id := can.NodeID; id != "" && (len(id) > longest || !strings.Contains(id, "://") || !strings.Contains(id, "{id}") && !strings.Contains(id, "{name}")) {
		return can, fmt.Errorf("node_id is %.40q; it must have the form ours://{zone}/{id}", id)
	}
	can.MaxInit = max(0, can.MaxInit)
	return can, nil
}

// mostLag is the longest list lag that a program may report.
const mostLag = time.Hour

// lag returns the list lag as in Capabilities, where 0 means unspecified.
func (o opened) lag() (time.Duration, error) {
	if o.ListLag == "" {
		return 0, nil
	}
	lag, err := time.ParseDuration(o.ListLag)
	if err != nil || lag < 0 || lag > mostLag {
		return 0, fmt.Errorf("list_lag is %.40q, which is not a duration between 0s and %v (write, for example, 30s)", o.ListLag, mostLag)
	}
	if lag == 0 {
		return -1, nil
	}
	return lag, nil
}

// longest is the maximum length of an id, a name, a tag or an address.
const longest = 512

// check converts a program's instance, or returns an error that names what is invalid.
func (i instance) check() (in driver.Instance, err error) {
	for key, text := range map[string]string{"id": i.ID, "type": i.Type, "zone": i.Zone, "private": i.Private, "public": i.Public, "user": i.User} {
		if err := checkText(key, text); err != nil {
			return in, err
		}
	}
	switch {
	case i.ID == "":
		return in, errors.New("an instance has no id")
	case strings.ContainsRune(i.ID, utf8.RuneError): // decoding put it in the place of invalid bytes, so it is another id
		return in, fmt.Errorf("the id %.40q is not valid UTF-8", i.ID)
	case !slices.Contains([]driver.State{driver.Pending, driver.Running, driver.Stopping, driver.Stopped}, i.State):
		return in, fmt.Errorf("unknown state %.40q", i.State)
	case i.Market != drover.OnDemand && i.Market != drover.Spot:
		return in, fmt.Errorf("unknown market %.40q", i.Market)
	}
	for _, address := range []string{i.Private, i.Public} {
		if err := checkAddress(address); err != nil {
			return in, err
		}
	}
	if err := checkTags(i.Tags); err != nil {
		return in, err
	}
	in = driver.Instance{
		ID: i.ID, Tags: i.Tags, ProviderType: i.Type, Zone: i.Zone, Market: i.Market, State: i.State, Reclaimed: i.Reclaimed,
		Addresses: driver.Addresses{Private: i.Private, Public: i.Public, User: i.User}, Created: timeOf(i.Created),
	}
	if i.State == driver.Stopping || i.State == driver.Stopped {
		in.Ended = timeOf(i.Ended)
	}
	if i.Failed != nil {
		in.Failed = i.Failed.classify()
	}
	return in, nil
}

func checkText(key, text string) error {
	if len(text) > longest || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%s is longer than %d bytes or has control characters: %.40q", key, longest, text)
	}
	return nil
}

func checkTags(tags map[string]string) error {
	for k, v := range tags {
		if err := errors.Join(checkText("the key of a tag", k), checkText("tag "+strconv.Quote(k), v)); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress accepts HOST and HOST:PORT.
func checkAddress(address string) error {
	host := address
	if h, port, err := net.SplitHostPort(address); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not an address", address)
		}
		host = h
	}
	if address != "" && (host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, " /@[]%")) {
		return fmt.Errorf("%q is not an address", address)
	}
	return nil
}

func timeOf(t *time.Time) drover.Time {
	if t == nil || t.IsZero() || t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return drover.TimeOf(*t)
}

// lacks returns the first key that is missing or has a value that none can have; empty if none does.
func (o offering) lacks(cpu drover.MilliCPU) string {
	for _, k := range []struct {
		key   string
		valid bool
	}{
		{"type", o.Type != ""}, {"zone", o.Zone != ""}, {"market", o.Market == drover.OnDemand || o.Market == drover.Spot},
		{"vcpus", cpu > 0}, {"memory_bytes", o.Memory > 0}, {"disk_bytes", o.Disk >= 0}, {"gpus", o.GPUs >= 0},
		{"arch", o.Arch != ""}, {"price_usd_per_hour", o.Price != ""},
	} {
		if !k.valid {
			return k.key
		}
	}
	return ""
}

// check converts a program's offering.
func (o offering) check(cloud string) (drover.Offering, error) {
	cpu, _ := drover.ParseMilliCPU(o.VCPUs.String()) // 0 if it is invalid
	if key := o.lacks(cpu); key != "" {
		return drover.Offering{}, fmt.Errorf("%s is missing or invalid", key)
	}
	price, priceErr := money(o.Price)
	diskPrice, diskErr := money(cmp.Or(o.DiskPrice, "0"))
	if diskPrice > mostDiskPrice {
		diskErr = fmt.Errorf("%.40q is not a price per GiB", o.DiskPrice.String())
	}
	if err := errors.Join(priceErr, diskErr, checkText("type", o.Type), checkText("zone", o.Zone), checkText("provider_type", o.ProviderType),
		checkText("quota_group", o.QuotaGroup)); err != nil {
		return drover.Offering{}, err
	}
	t := drover.InstanceType{Name: o.Type, ProviderType: o.ProviderType, Resources: drover.Resources{
		CPU: cpu, Memory: o.Memory, Disk: o.Disk, GPUs: o.GPUs, Arch: o.Arch,
	}}
	if t.ProviderType == "" {
		t.ProviderType = o.Type
	}
	return drover.Offering{Cloud: cloud, Zone: o.Zone, Type: t, Market: o.Market, Price: price, DiskPrice: diskPrice, QuotaGroup: o.QuotaGroup}, nil
}

// These are above every hourly price of an instance and of a GiB of disk. The largest possible volume times the latter
// does not overflow.
const (
	mostPrice     = 1_000_000 * drover.Dollar
	mostDiskPrice = 1000 * drover.Dollar
)

// money reads an amount and rounds it to nine decimal places: programs that calculate with floating-point numbers write
// more, or an exponent.
func money(n json.Number) (drover.Money, error) {
	f, err := n.Float64()
	if err != nil || !(f >= 0 && f <= mostPrice.USD()) {
		return 0, fmt.Errorf("%.40q is not a price", n.String())
	}
	return drover.ParseMoney(strconv.FormatFloat(f, 'f', 9, 64))
}
