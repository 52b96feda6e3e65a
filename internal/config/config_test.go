package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/config"
)

// keys has a driver's own keys for these tests.
type keys struct {
	Region string         `yaml:"region,required"`
	Zones  []string       `yaml:"zones"`
	Types  []keyType      `yaml:"types"`
	Token  drover.Secret  `yaml:"token"`
	Wait   *time.Duration `yaml:"wait"`
	Chance float64        `yaml:"chance"`
	Seed   uint64         `yaml:"seed"`
}

func (k *keys) Default() { k.Zones = []string{"a"} }

func (k *keys) Check() error {
	if k.Chance > 1 {
		return errors.New("chance is more than 1")
	}
	return nil
}

type keyType struct {
	Name   string          `json:"name"`
	VCPUs  drover.MilliCPU `json:"vcpus"`
	Memory drover.Bytes    `json:"memory"`
	Price  drover.Money    `json:"price"`
	Market drover.Market   `json:"market"`
}

// cloud returns the only cloud of a configuration, with these keys.
func cloud(t *testing.T, dir, own string) config.Cloud {
	t.Helper()
	c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds:\n  x: {driver: test, image: i, "+own+"}\n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Clouds[0]
}

// covers C1
func TestDriversKeys(t *testing.T) {
	t.Run("override the driver's defaults", func(t *testing.T) {
		var got keys
		c := cloud(t, "", "region: eu, types: [{name: s, vcpus: 0.5, memory: 1Gi, price: 0.25, market: spot}], wait: 3s, chance: 0.5, seed: 7")
		if err := c.Decode(&got); err != nil {
			t.Fatal(err)
		}
		wait := 3 * time.Second
		want := keys{Region: "eu", Zones: []string{"a"}, Types: []keyType{{"s", 500, drover.GiB, drover.Dollar / 4, drover.Spot}}, Wait: &wait, Chance: 0.5, Seed: 7}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(drover.Secret{})); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})

	t.Run("are checked strictly, and include misspelt common keys", func(t *testing.T) {
		err := cloud(t, "", "zonse: [b], max_instanecs: 3, wait: 3, seed: -1").Decode(&keys{})
		want := `drover.yaml:3:6: region is missing
drover.yaml:3:31: unknown key "zonse"
    hint: did you mean zones?
drover.yaml:3:43: unknown key "max_instanecs"
    hint: did you mean max_instances?
drover.yaml:3:67: "3" is not a duration (write, for example, 90s or 1h30m)
    hint: 3 has no unit; for seconds write 3s
drover.yaml:3:76: expected a non-negative whole number, not "-1"`
		if diff := cmp.Diff(want, text(err)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})

	t.Run("are checked by the driver's type, with their position", func(t *testing.T) {
		err := cloud(t, "", "region: eu, chance: 1.5").Decode(&keys{})
		if diff := cmp.Diff("drover.yaml:3:6: chance is more than 1", text(err)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})

	t.Run("leave a mapping of types to the common filter", func(t *testing.T) {
		var got keys
		c := cloud(t, "", `region: eu, types: {include: ["m7*"], exclude: ["*.metal"], max_price: 2}`)
		if err := c.Decode(&got); err != nil || got.Types != nil {
			t.Fatalf("the driver got %v, %v", got.Types, err)
		}
		for name, want := range map[string]bool{"m7.large": true, "m7.metal": false, "c7.large": false} {
			if (c.Types.Refuses(name, 2*drover.Dollar) == "") != want {
				t.Errorf("%s at 2 USD: want allowed %v", name, want)
			}
		}
		if why := c.Types.Refuses("m7.large", 2*drover.Dollar+1); !strings.Contains(why, "types.max_price, $2") {
			t.Error("a price above max_price is allowed")
		}
	})
}

// covers C6
func TestPrices(t *testing.T) {
	c := cloud(t, "", `region: eu, disk: 30Gi, types: {max_price: 1.76}, prices: {discount: 12.5%, reserved: [{type: m7.large, count: 3, price: 0.04}]}`)
	for listed, want := range map[drover.Money]drover.Money{2 * drover.Dollar: 1_750_000_000, 1: 0, 0: 0} {
		paid, whyNot := c.Offer(drover.Offering{Type: drover.InstanceType{Name: "m7.large"}, Price: listed})
		if paid.Price != want || whyNot != "" {
			t.Errorf("a list price of %v becomes %v (left out: %q), want %v", listed, paid.Price, whyNot, want)
		}
	}
	if _, whyNot := c.Offer(drover.Offering{Price: 3 * drover.Dollar}); whyNot == "" {
		t.Error("a type above max_price even after the discount may be used")
	}
	if paid, whyNot := c.Offer(drover.Offering{Price: 1760 * drover.Dollar / 1000, DiskPrice: 80 * drover.Dollar / 1000}); paid.Price != 1_540_000_000+30*70_000_000 || whyNot != "" {
		t.Errorf("with its volume, it costs %v (left out: %q)", paid.Price, whyNot)
	}
	if want := (config.Prices{Discount: 12_50, Reserved: []config.Reservation{{Type: "m7.large", Count: 3, Price: drover.Dollar / 25}}, Interval: 15 * time.Minute}); !cmp.Equal(c.Prices, want) {
		t.Errorf("read %+v, want %+v", c.Prices, want)
	}
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_TEST_SECRET", "from the environment")
	t.Setenv("DROVER_TEST_EMPTY", "")
	for text, want := range map[string]string{"${env:DROVER_TEST_SECRET}": "from the environment", "file:token": "from a file"} {
		t.Run(text+" is read", func(t *testing.T) {
			var got keys
			if err := cloud(t, dir, `region: eu, token: "`+text+`"`).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.Token.Reveal() != want {
				t.Errorf("got %q, want %q", got.Token.Reveal(), want)
			}
		})
	}
	for own, want := range map[string]string{
		"hunter2":                  "a secret must not be in the file itself\n    hint: write ${env:NAME} for an environment variable, or file:PATH",
		"${env:DROVER_TEST_NONE}":  "the environment variable DROVER_TEST_NONE is unset or empty",
		"${env:DROVER_TEST_EMPTY}": "the environment variable DROVER_TEST_EMPTY is unset or empty",
		"file:empty":               "the secret in empty is empty",
		"file:none":                "reading a secret: open " + dir + "/none: no such file or directory",
	} {
		t.Run(own+" is refused", func(t *testing.T) {
			err := cloud(t, dir, `region: eu, token: "`+own+`"`).Decode(&keys{})
			if diff := cmp.Diff("drover.yaml:3:50: "+want, text(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestASecretAtTheWrongPlaceIsNotRepeated(t *testing.T) {
	_, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {here: {driver: local}}\nsecret: hunter2\n"), "")
	want := "drover.yaml:3:1: unknown key \"secret\"\n    hint: write notify: {secret: …}"
	if diff := cmp.Diff(want, text(err)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		c, err := config.Parse("drover.yaml", []byte(text), "/etc")
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash()
	}
	plain := hash("version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y}}\n")

	t.Run("does not change with order, comments or written-out defaults", func(t *testing.T) {
		same := hash("# hello\nclouds:\n  b: {max_creating: 10, driver: y}\n  a: {l: [2], k: 1, driver: x, list_interval: 60s}\nversion: 1\n")
		if same != plain {
			t.Error("the hash changed")
		}
	})
	t.Run("changes with a value, common or a driver's", func(t *testing.T) {
		for _, other := range []string{
			"version: 1\nclouds: {a: {driver: x, k: 2, l: [2]}, b: {driver: y}}\n",
			"version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y, max_creating: 9}}\n",
			"version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y}}\ninstances: {idle_timeout: 2m}\n",
			"version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y}}\nlisten: 127.0.0.1:1\n",
			"version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y}}\nurl: https://x\n",
			"version: 1\nclouds: {a: {driver: x, k: 1, l: [2]}, b: {driver: y}}\njobs: {schedule_timeout: 1h}\n",
		} {
			if hash(other) == plain {
				t.Errorf("this other configuration has the same hash:\n%s", other)
			}
		}
	})
}

func TestDefault(t *testing.T) {
	c := config.Default("lab")
	if c.Fleet != "lab" || len(c.Clouds) != 1 || c.Clouds[0].Name != "here" || c.Clouds[0].Driver != "local" || c.Clouds[0].MaxInstances != 4 {
		t.Errorf("the default is %+v, want this host with four instances", c)
	}
}

func TestFaultsFoundLater(t *testing.T) {
	b, err := config.ParseBatch("batch.yaml", []byte(`jobs:
  - name: small
    command: [x]
  - name: large
    command: [x]
    resources: {vcpus: 1, memory: 900Gi}
    placement: {cloud: hre}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a fault is reported at its key", b.Fault("large", "resources.memory", "no type has it", "ask for less"), "batch.yaml:6:35: no type has it\n    hint: ask for less"},
		{"a missing key is reported at the mapping that should contain it", b.Fault("large", "resources.disk", "no type has it", ""), "batch.yaml:6:16: no type has it"},
		{"a fault in a missing mapping is reported at the job", b.Fault("small", "resources", "no type has it", ""), "batch.yaml:2:5: no type has it"},
		{"an unknown cloud is reported with the nearest name", b.CheckClouds([]string{"here", "aws"}), "batch.yaml:7:24: there is no cloud \"hre\"\n    hint: did you mean here?"},
		{"configured clouds are accepted", b.CheckClouds([]string{"hre"}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, text(c.err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}

	t.Run("a configuration's fault is reported at its path", func(t *testing.T) {
		c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {x: {driver: lcoal}}\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		got := text(c.Fault("clouds.x.driver", "there is no driver lcoal", "did you mean local?"))
		if diff := cmp.Diff("drover.yaml:2:22: there is no driver lcoal\n    hint: did you mean local?", got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestErrors(t *testing.T) {
	_, err := config.ParseBatch("batch.yaml", []byte("jbos: []"), "")
	t.Run("are faults with a position", func(t *testing.T) {
		var faults config.Faults
		want := config.Faults{
			{File: "batch.yaml", Line: 1, Column: 1, Message: `unknown key "jbos"`, Hint: "did you mean jobs?"},
		}
		if !errors.As(err, &faults) {
			t.Fatalf("%T is not Faults", err)
		}
		if diff := cmp.Diff(want, faults); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("are of kind invalid", func(t *testing.T) {
		_, missing := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
		for _, err := range []error{err, missing} {
			if got := drover.KindOf(err); got != drover.KindInvalid {
				t.Errorf("%v has kind %s", err, got)
			}
		}
	})
}

// text returns an error's text, empty for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDurationsInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0d": 0, "1.5d": 36 * time.Hour, "36500d": 36500 * 24 * time.Hour} {
		if got, err := config.ParseDuration(text); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1d", "1d12h", "36501d", "d"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%s is %v, want an error", text, got)
		}
	}
}
