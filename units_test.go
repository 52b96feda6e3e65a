package drover_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
)

func TestMoney(t *testing.T) {
	t.Run("amounts are read to the nano-dollar", func(t *testing.T) {
		for text, want := range map[string]drover.Money{
			"0": 0, "5": 5 * drover.Dollar, "$12": 12 * drover.Dollar, "0.0425": 42_500_000, "0.000000001": 1, "1.": drover.Dollar,
			"9223372036.854775807": math.MaxInt64,
		} {
			if got, err := drover.ParseMoney(text); got != want || err != nil {
				t.Errorf("%q is %d, %v", text, int64(got), err)
			}
		}
	})
	t.Run("malformed amounts are refused", func(t *testing.T) {
		for _, text := range []string{"", "$", ".5", "-1", "1,5", "1e3", "0.0000000001", "9223372036.854775808", "1.-5", "1.+5", "five", "1 "} {
			if got, err := drover.ParseMoney(text); err == nil {
				t.Errorf("%q was read as %v", text, got)
			}
		}
	})
	t.Run("every amount survives a round trip with all its decimals", rapid.MakeCheck(func(t *rapid.T) {
		m := drover.Money(rapid.Int64Min(0).Draw(t, "m"))
		digits := strconv.FormatInt(int64(m), 10)
		digits = strings.Repeat("0", max(0, 10-len(digits))) + digits
		text := digits[:len(digits)-9] + "." + digits[len(digits)-9:]
		if got, err := drover.ParseMoney(text); got != m || err != nil {
			t.Fatalf("%q is %d, %v", text, int64(got), err)
		}
	}))
	t.Run("the text has four decimals, or more for a small amount", func(t *testing.T) {
		for m, want := range map[drover.Money]string{0: "$0.0000", 42_000_000: "$0.0420", 9_999_000: "$0.009999", 1000: "$0.000001", 999: "$0.000000999", 1: "$0.000000001"} {
			if s := m.String(); s != want {
				t.Errorf("%d: %s, want %s", m, s, want)
			}
		}
	})
}

func TestMoneyFor(t *testing.T) {
	t.Run("is exact, rounded down to the nano-dollar", rapid.MakeCheck(func(t *rapid.T) {
		m, d := drover.Money(rapid.Int64().Draw(t, "price")), time.Duration(rapid.Int64().Draw(t, "d"))
		want := new(big.Int)
		if m > 0 && d > 0 {
			want.Mul(big.NewInt(int64(m)), big.NewInt(int64(d)))
			want.Quo(want, big.NewInt(int64(time.Hour)))
		}
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := m.For(d); int64(got) != want.Int64() {
			t.Fatalf("%d for %v is %d, want %v", int64(m), d, int64(got), want)
		}
	}))
	t.Run("an overflow gives the largest amount, even just past the bound", func(t *testing.T) {
		for _, d := range []time.Duration{2 * time.Hour, 2*time.Hour + 1, math.MaxInt64} {
			if got := drover.Money(math.MaxInt64).For(d); got != math.MaxInt64 {
				t.Errorf("%v: %d", d, int64(got))
			}
		}
	})
	t.Run("an hour costs the price", func(t *testing.T) {
		if got := (3 * drover.Dollar).For(time.Hour); got != 3*drover.Dollar {
			t.Error(got)
		}
	})
}

func TestMoneyBuys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, price := drover.Money(rapid.Int64Range(0, 1e15).Draw(rt, "money")), drover.Money(rapid.Int64Range(1, 1e12).Draw(rt, "price"))
		if d := m.Buys(price); price.For(d) > m || d < 1e18 && price.For(d+2) < m {
			rt.Errorf("%d buys %v at %d an hour, which costs %d", m, d, price, price.For(d))
		}
	})
	if d := drover.Dollar.Buys(0); d != math.MaxInt64 {
		t.Errorf("a dollar buys %v of something that costs nothing", d)
	}
}

func TestMoneyPart(t *testing.T) {
	t.Run("is exact, rounded down to the nano-dollar", rapid.MakeCheck(func(t *rapid.T) {
		m, of := rapid.Int64Min(0).Draw(t, "m"), rapid.Int64Min(1).Draw(t, "of")
		n := rapid.Int64Range(1, of).Draw(t, "n")
		want := new(big.Int).Mul(big.NewInt(m), big.NewInt(n))
		want.Quo(want, big.NewInt(of))
		if got := drover.Money(m).Part(n, of); int64(got) != want.Int64() {
			t.Fatalf("%d/%d of %d is %d, want %v", n, of, m, int64(got), want)
		}
	}))
	t.Run("parts never add up to more than the whole", rapid.MakeCheck(func(t *rapid.T) {
		m := drover.Money(rapid.Int64Min(0).Draw(t, "m"))
		of := rapid.Int64Range(2, math.MaxInt64).Draw(t, "of")
		n := rapid.Int64Range(1, of-1).Draw(t, "n")
		if a, b := m.Part(n, of), m.Part(of-n, of); a > m || b > m || a+b > m {
			t.Fatalf("%d and %d of %d", a, b, m)
		}
	}))
}

func TestMilliCPU(t *testing.T) {
	t.Run("every number of vCPUs survives a round trip", rapid.MakeCheck(func(t *rapid.T) {
		c := drover.MilliCPU(rapid.Int64Min(0).Draw(t, "c"))
		if got, err := drover.ParseMilliCPU(c.String()); got != c || err != nil {
			t.Fatalf("%q is %d, %v", c.String(), int64(got), err)
		}
	}))
	t.Run("malformed numbers of vCPUs are refused", func(t *testing.T) {
		for _, text := range []string{"", ".5", "-1", "0.0001", "1e3", "two", "2m"} {
			if got, err := drover.ParseMilliCPU(text); err == nil {
				t.Errorf("%q was read as %v", text, got)
			}
		}
	})
}

func TestBytes(t *testing.T) {
	t.Run("every size survives a round trip", rapid.MakeCheck(func(t *rapid.T) {
		b := drover.Bytes(rapid.Int64Min(0).Draw(t, "b") >> rapid.IntRange(0, 62).Draw(t, "right") << rapid.IntRange(0, 62).Draw(t, "left"))
		b &= math.MaxInt64
		if got, err := drover.ParseBytes(b.String()); got != b || err != nil {
			t.Fatalf("%q is %d, %v", b.String(), int64(got), err)
		}
	}))
	t.Run("a fraction of a unit is exact, rounded down to the byte", rapid.MakeCheck(func(t *rapid.T) {
		units := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
		text := rapid.StringMatching(`[0-9]{1,6}\.[0-9]{0,9}`).Draw(t, "number")
		unit := rapid.SampledFrom([]string{"", "K", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"}).Draw(t, "unit")
		number, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		number.Mul(number, new(big.Rat).SetInt64(units[unit]))
		want := new(big.Int).Quo(number.Num(), number.Denom())
		if got, err := drover.ParseBytes(text + unit); err != nil || int64(got) != want.Int64() {
			t.Fatalf("%q is %d, %v, want %v", text+unit, int64(got), err, want)
		}
	}))
	t.Run("malformed sizes are refused", func(t *testing.T) {
		for _, text := range []string{"", "Gi", ".5Gi", "-1", "1e3", "0x10", "1_000", "NaN", "inf", "16GB", "16 Gi", "8388608Ti", "16777216Ti", "9223372036854775808", "1.0000000000000000001"} {
			if got, err := drover.ParseBytes(text); err == nil {
				t.Errorf("%q was read as %v", text, got)
			}
		}
	})
}

func TestWholeGiB(t *testing.T) {
	for size, want := range map[drover.Bytes]int64{0: 0, 1: 1, drover.GiB: 1, drover.GiB + 1: 2, 20 * drover.GiB: 20} {
		if got := size.WholeGiB(); got != want {
			t.Errorf("%s: %d", size, got)
		}
	}
}

func TestBytesForPeople(t *testing.T) {
	for b, want := range map[drover.Bytes]string{
		0: "0", 1023: "1023", drover.KiB: "1Ki", 1536: "1.5Ki", 24684092 * drover.KiB: "23.5Gi", 5 * drover.GiB: "5Gi", drover.TiB - 1: "1023.9Gi", math.MaxInt64: "8388607.9Ti",
	} {
		if got := b.Rounded(); got != want {
			t.Errorf("%d is shown as %s, want %s", int64(b), got, want)
		}
	}
}

func TestTime(t *testing.T) {
	t.Run("every time survives a round trip", rapid.MakeCheck(func(t *rapid.T) {
		at := drover.Time(rapid.Int64().Draw(t, "at"))
		if got := drover.TimeOf(at.Std()); got != at {
			t.Fatalf("%d came back as %d", int64(at), int64(got))
		}
	}))
	t.Run("the zero Time is never in both directions", func(t *testing.T) {
		if !drover.Time(0).Std().IsZero() || drover.TimeOf(time.Time{}) != 0 || drover.Time(0).String() != "never" {
			t.Error("it is not")
		}
	})
	t.Run("Sub undoes Add", func(t *testing.T) {
		at := drover.Time(1e18)
		if at.Add(time.Minute).Sub(at) != time.Minute || at.String() != "2001-09-09T01:46:40Z" {
			t.Error(at.Add(time.Minute).Sub(at), at)
		}
	})
}

func TestTimeIsRFC3339InJSON(t *testing.T) {
	for _, test := range []struct {
		at   drover.Time
		want string
	}{
		{0, "0"},
		{1795204930213873167, `"2026-11-20T20:02:10.213873167Z"`},
		{1795204930000000000, `"2026-11-20T20:02:10Z"`},
	} {
		data, err := json.Marshal(test.at)
		if err != nil || string(data) != test.want {
			t.Errorf("%d is %s (%v), want %s", test.at, data, err, test.want)
		}
		var back drover.Time
		if err := json.Unmarshal(data, &back); err != nil || back != test.at {
			t.Errorf("%s reads as %d (%v), want %d", data, back, err, test.at)
		}
	}
	var at drover.Time
	if err := json.Unmarshal([]byte(`1500000000`), &at); err != nil || at != 1500000000 {
		t.Errorf("a number of nanoseconds reads as %d (%v)", at, err)
	}
	if err := json.Unmarshal([]byte(`"yesterday"`), &at); err == nil {
		t.Error("yesterday was read as a time")
	}
}
