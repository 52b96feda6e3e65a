package external

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"drover"
)

// FuzzReply lets a program reply anything: the result is either a valid reply or an error with a kind and a harmless
// message.
// covers C9
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		`{"id":1,"result":{"instances":[{"id":"a","tags":{"k":"v"},"type":"t","zone":"z","market":"spot","state":"running","public":"1.2.3.4:22","created":"2026-01-02T03:04:05Z"}]}}`,
		`{"id":1,"result":{"instances":[]}}`, `{"result":{"instances":null}}`, `{"error":{"kind":"rate_limit","retry_after_seconds":1e9}}`,
		`{"result":{"offerings":[{"type":"t","zone":"z","market":"on_demand","vcpus":0.5,"memory_bytes":1,"arch":"amd64","price_usd_per_hour":1e-05}]}}`,
		`{"result":{"offerings":[{"type":"t","zone":"z","market":"spot","vcpus":1,"memory_bytes":1,"arch":"amd64","price_usd_per_hour":1,"disk_price_usd_per_hour":-1e-05}]}}`,
		`{"result":{"host_keys":"planted","calls":["images"]}}`, `{}`, `[]`, `null`, "\x00", `{"error":{"kind":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var list listed
		err := decode(line, 1, &list)
		wantKind(t, err)
		if err == nil && list.Instances != nil {
			for _, i := range *list.Instances {
				in, err := i.check()
				if err == nil && (in.ID == "" || in.State == "" || strings.ContainsFunc(in.ID+in.Addresses.Public, unicode.IsControl) || in.Created < 0) {
					t.Errorf("%s is classified as %+v", line, in)
				}
			}
		}
		var offers offered
		if err := decode(line, 1, &offers); err == nil && offers.Offerings != nil {
			for _, o := range *offers.Offerings {
				if got, err := o.check("c"); err == nil && (got.Price < 0 || got.DiskPrice < 0 || got.Type.Resources.CPU <= 0 || got.Type.ProviderType == "") {
					t.Errorf("%s is classified as %+v", line, got)
				}
			}
		}
		var said opened
		if err := decode(line, 1, &said); err == nil {
			said.check()
		}
	})
}

func wantKind(t *testing.T, err error) {
	t.Helper()
	var e *drover.Error
	if err == nil {
		return
	}
	if !errors.As(err, &e) || e.Message == "" || len(e.Message) > maxMessage+200 || e.Kind == drover.KindInternal {
		t.Errorf("got %#v", err)
	}
}

// TestDiskPrice lets a program report a GiB's price, none, or an invalid one.
func TestDiskPrice(t *testing.T) {
	for said, want := range map[string]drover.Money{
		`1.1e-4`: 110_000, `0.30000000000000004`: 300_000_000, `999.999999999`: 999_999_999_999, `0`: 0, ``: 0, `-1`: -1, `1000001`: -1,
	} {
		o := offering{Type: "t", Zone: "z", Market: drover.Spot, VCPUs: "1", Memory: 1, Arch: "amd64", Price: "1", DiskPrice: json.Number(said)}
		switch got, err := o.check("c"); {
		case want < 0 && err == nil, want >= 0 && (err != nil || got.DiskPrice != want):
			t.Errorf("%q is read as %d, %v", said, int64(got.DiskPrice), err)
		}
	}
}
