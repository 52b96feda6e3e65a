package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func aPanel(title, unit string, values ...float64) Panel {
	var l Line
	l.Name = "drover"
	for i, v := range values {
		l.Points = append(l.Points, Point{time.Unix(int64(i)*3600, 0), v})
	}
	other := l
	other.Name = "<one per job>"
	return Panel{Title: title, Unit: unit, Lines: []Line{l, other}, Steps: true}
}

func TestSVG(t *testing.T) {
	t.Run("is well-formed, with its title, every panel's title and unit, and one legend", func(t *testing.T) {
		var out bytes.Buffer
		c := Chart{"a&b.csv, prices of ec2.csv", []Panel{aPanel("Instances", "instances", 1, 2, 1), aPanel("Spent", "USD", 0, 0, 0)}}
		if err := c.SVG(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{">a&amp;b.csv, prices of ec2.csv<", ">Instances<", ">Spent (USD)<", ">drover<", ">&lt;one per job&gt;<", ">UTC<", "@media (prefers-color-scheme: dark)"} {
			if n := strings.Count(out.String(), want); n != 1 {
				t.Errorf("%s occurs %d times, want 1", want, n)
			}
		}
		if !strings.Contains(out.String(), `aria-label="a&amp;b.csv, prices of ec2.csv: Instances, Spent (USD) over time"`) || strings.Contains(out.String(), `<svg width=`) {
			t.Errorf("it lacks a label or has a fixed width: %.300s", out.String())
		}
		d := xml.NewDecoder(&out)
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a line goes to the next point in a step or straight", func(t *testing.T) {
		for steps, want := range map[bool]string{true: `d="M70.0 200.0H470.0V36.0H870.0V118.0"`, false: `d="M70.0 200.0L470.0 36.0L870.0 118.0"`} {
			var out bytes.Buffer
			p := aPanel("Jobs", "", 0, 2, 1)
			p.Steps = steps
			d := drawing{Buffer: out, begin: time.Unix(0, 0), end: time.Unix(7200, 0)}
			d.panel(p, 0)
			if !strings.Contains(d.String(), want) {
				t.Errorf("%s is not in %s", want, d.String())
			}
		}
	})
	t.Run("an empty chart is refused", func(t *testing.T) {
		for _, nothing := range []Chart{{}, {"title", []Panel{{Title: "no lines"}}}} {
			if err := nothing.SVG(io.Discard); err == nil {
				t.Errorf("%v was drawn", nothing)
			}
		}
	})
}

func TestScales(t *testing.T) {
	for largest, want := range map[float64]string{
		0: "0.0 0.2 0.4 0.6 0.8 1.0", 1: "0.0 0.2 0.4 0.6 0.8 1.0", 3: "0 1 2 3", 5: "0 1 2 3 4 5", 5.1: "0 2 4 6", 0.023: "0.000 0.005 0.010 0.015 0.020 0.025",
		1500: "0 500 1000 1500", 123456: "0 50000 100000 150000", 40000000: "0 1e+07 2e+07 3e+07 4e+07", math.Inf(1): "0.0 0.2 0.4 0.6 0.8 1.0",
	} {
		s := scaleOf(largest)
		var labels []string
		for _, v := range s.values() {
			labels = append(labels, s.label(v))
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%v: %s, want %s", largest, got, want)
		}
		if s.top() < largest && !math.IsInf(largest, 1) {
			t.Errorf("%v is above the top of the scale, %v", largest, s.top())
		}
	}
}

func TestTimeLabelsAreRoundAndFew(t *testing.T) {
	begin := time.Date(2026, 3, 1, 14, 7, 30, 0, time.UTC)
	for span, want := range map[time.Duration][]string{
		20 * time.Second:    {"14:07:30", "14:07:35", "14:07:40", "14:07:45", "14:07:50"},
		8 * time.Minute:     {"14:08", "14:09", "14:10", "14:11", "14:12", "14:13", "14:14", "14:15"},
		20 * time.Hour:      {"03-01 15:00", "03-01 18:00", "03-01 21:00", "03-02 00:00", "03-02 03:00", "03-02 06:00", "03-02 09:00"},
		5 * day:             {"2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06"},
		200 * 365 * day:     nil,
		10000 * time.Second: {"14:30", "15:00", "15:30", "16:00", "16:30"},
	} {
		var got []string
		for _, at := range times(begin, begin.Add(span)) {
			got = append(got, at.label)
		}
		if want == nil && len(got) > 0 && len(got) <= 2*mostLabels {
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", span, diff)
		}
	}
}

// contrast returns the contrast ratio of two colors as WCAG 2 defines it.
func contrast(t *testing.T, one, other string) float64 {
	luminance := func(hex string) float64 {
		var parts [3]int
		if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &parts[0], &parts[1], &parts[2]); err != nil {
			t.Fatalf("%s: %v", hex, err)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(parts[i]) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum + 0.05
	}
	a, b := luminance(one), luminance(other)
	return max(a, b) / min(a, b)
}

func TestColorsAreReadableOnLightAndDarkPages(t *testing.T) {
	for name, of := range map[string]func(color) string{"light": func(c color) string { return c.light }, "dark": func(c color) string { return c.dark }} {
		if got := contrast(t, of(ink), of(paper)); got < 7 {
			t.Errorf("%s: text has a contrast of %.1f", name, got)
		}
		for i, c := range palette {
			if got := contrast(t, of(c), of(paper)); got < 3 { // WCAG 2's minimum for graphics
				t.Errorf("%s: line %d has a contrast of %.1f", name, i, got)
			}
		}
	}
}
