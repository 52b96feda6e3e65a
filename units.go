package drover

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Money is an amount of US dollars in nano-dollars (10⁻⁹ USD). Drover never makes a negative amount.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000_000

// USD returns the amount as a number of dollars, for programs that read JSON. It is for display only: add amounts as
// Money.
func (m Money) USD() float64 { return float64(m) / float64(Dollar) }

// String renders the amount with four decimals, as in "$0.0420", with six if it is below a cent, or with nine, which is
// exact, if it is below a millionth of a dollar.
func (m Money) String() string {
	switch {
	case m > 0 && m < Dollar/1_000_000:
		return fmt.Sprintf("$%.9f", m.USD())
	case m > 0 && m < Dollar/100:
		return fmt.Sprintf("$%.6f", m.USD())
	}
	return fmt.Sprintf("$%.4f", m.USD())
}

// ParseMoney reads a decimal number of dollars ("5", "0.0425", "$12"), exact to the nano-dollar.
func ParseMoney(s string) (Money, error) {
	whole, frac, _ := strings.Cut(strings.TrimPrefix(s, "$"), ".")
	if len(frac) > 9 {
		return 0, fmt.Errorf("%q has more than nine decimal places", s)
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", 9-len(frac)), 10, 64)
	if err != nil || n < 0 || whole == "" {
		return 0, fmt.Errorf("%q is not an amount in dollars (write, for example, 0.25)", s)
	}
	return Money(n), nil
}

// Part returns n/of of the amount, rounded down to whole nano-dollars; n is from 0 to of, and of is positive.
func (m Money) Part(n, of int64) Money {
	hi, lo := bits.Mul64(uint64(m), uint64(n))
	part, _ := bits.Div64(hi, lo, uint64(of))
	return Money(part)
}

// For returns the cost of renting something at this hourly price for d; a negative d costs nothing. The product has 128
// bits, so it cannot overflow; the result is rounded down to whole nano-dollars.
func (m Money) For(d time.Duration) Money {
	if d <= 0 || m <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(m), uint64(d))
	if hi >= uint64(time.Hour) {
		return math.MaxInt64
	}
	cost, _ := bits.Div64(hi, lo, uint64(time.Hour))
	return Money(min(cost, math.MaxInt64))
}

// Buys returns how long the amount pays for something at an hourly price, rounded down to whole nanoseconds; the
// longest duration if that costs nothing.
func (m Money) Buys(price Money) time.Duration {
	switch {
	case m <= 0:
		return 0
	case price <= 0:
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(m), uint64(time.Hour))
	if hi >= uint64(price) {
		return math.MaxInt64
	}
	d, _ := bits.Div64(hi, lo, uint64(price))
	return time.Duration(min(d, math.MaxInt64))
}

// MilliCPU is a number of vCPUs in thousandths: 1500 is one and a half.
type MilliCPU int64

// String renders the number of vCPUs without needless decimals, as in "1.5".
func (c MilliCPU) String() string {
	if c < 0 {
		return strconv.FormatFloat(float64(c)/1000, 'f', -1, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", c/1000, c%1000), "0"), ".")
}

// ParseMilliCPU reads a decimal number of vCPUs ("2", "0.5"), at most three decimals.
func ParseMilliCPU(s string) (MilliCPU, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) > 3 {
		return 0, fmt.Errorf("%q is more precise than a thousandth of a vCPU", s)
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", 3-len(frac)), 10, 64)
	if err != nil || n < 0 || whole == "" {
		return 0, fmt.Errorf("%q is not a number of vCPUs (write, for example, 2 or 0.5)", s)
	}
	return MilliCPU(n), nil
}

// Bytes is a size in bytes.
type Bytes int64

// The binary sizes that configuration and batch files use.
const (
	KiB Bytes = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var byteUnits = []struct {
	name string
	size Bytes
}{{"Ti", TiB}, {"Gi", GiB}, {"Mi", MiB}, {"Ki", KiB}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}}

// String renders the size in the largest binary unit that leaves it whole, as in "512Mi".
func (b Bytes) String() string {
	for _, u := range byteUnits[:4] {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Rounded is the size for people, to a tenth of its unit.
func (b Bytes) Rounded() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"Ti", TiB}, {"Gi", GiB}, {"Mi", MiB}, {"Ki", KiB}} {
		if b < u.size {
			continue
		}
		tenths := b%u.size*10/u.size + b/u.size*10
		return strings.TrimSuffix(fmt.Sprintf("%d.%d", tenths/10, tenths%10), ".0") + u.name
	}
	return strconv.FormatInt(int64(b), 10)
}

// WholeGiB returns the size in GiB, rounded up: volumes are created, enlarged and billed in whole GiB.
func (b Bytes) WholeGiB() int64 { return int64((b + GiB - 1) / GiB) }

// ParseBytes reads a size with a binary (Ki, Mi, Gi, Ti) or decimal (K, M, G, T) unit, or plain bytes: "512Mi",
// "1.5Gi", "1000". It is exact, except that it drops a fraction of a byte.
func ParseBytes(s string) (Bytes, error) {
	number, unit := s, Bytes(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = rest, u.size
			break
		}
	}
	whole, frac, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole+frac, 10, 63)
	if err == nil && whole != "" && len(frac) <= 18 {
		hi, lo := bits.Mul64(n, uint64(unit))
		if one := pow10(len(frac)); hi < one {
			if size, _ := bits.Div64(hi, lo, one); size <= math.MaxInt64 {
				return Bytes(size), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a size (write, for example, 512Mi or 16Gi)", s)
}

func pow10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// Time is an instant in nanoseconds since 1970-01-01 UTC, as the engine counts it. The zero Time means "never" or "not
// yet".
type Time int64

// TimeOf converts a wall-clock time; the zero time.Time gives the zero Time.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixNano())
}

// Std converts to a wall-clock time in UTC; the zero Time gives the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(t)).UTC()
}

// Add returns the instant d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// MarshalJSON writes the instant as RFC 3339 in UTC, to the nanosecond; the zero Time as 0.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("0"), nil
	}
	b := make([]byte, 0, len(time.RFC3339Nano)+2)
	b = append(b, '"')
	b = t.Std().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, or a number of nanoseconds.
func (t *Time) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		*t = Time(n)
		return nil
	}
	std, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	*t = TimeOf(std)
	return err
}

// String renders the instant as RFC 3339 in UTC, or "never".
func (t Time) String() string {
	if t == 0 {
		return "never"
	}
	return t.Std().Format(time.RFC3339Nano)
}
