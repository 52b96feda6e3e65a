package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"drover"
)

// functions are the templates' functions for formatting values.
var functions = template.FuncMap{
	"usd": usd, "count": count, "clock": clock, "until": until, "plural": plural, "tenth": func(v float64) float64 { return v / 10 },
	"bytes": func(b drover.Bytes) string { return b.Rounded() }, "vcpus": func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) },
	"kind": kind, "mention": mentionIn,
	"seconds": func(s drover.Seconds) string { return took(time.Duration(s)) },
	"word":    func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
	"command": command, "path": url.PathEscape, "std": func(t drover.Time) time.Time { return t.Std() }, "iso": iso, "spent": spent, "sentence": sentence,
	"now": time.Now, "in": func(counts map[drover.JobState]int, state string) int { return counts[drover.JobState(state)] }, "at": func(t *time.Time) time.Time { return *t },
	"gib": gib,
}

// usd formats an amount for people: to the cent or, below ten cents, to a hundredth of a cent.
func usd(v float64) string {
	switch {
	case v == 0:
		return "$0"
	case v < 0.0001:
		return "<$0.0001"
	case v < 0.1:
		return "$" + strconv.FormatFloat(v, 'f', 4, 64)
	}
	whole, cents, _ := strings.Cut(strconv.FormatFloat(v, 'f', 2, 64), ".")
	return "$" + grouped(whole) + "." + cents
}

// gib formats a size in GiB, to a hundredth: a host's memory is no round number.
func gib(b drover.Bytes) string {
	return strconv.FormatFloat(math.Round(float64(b)/float64(drover.GiB)*100)/100, 'f', -1, 64)
}

// count formats a number with separated thousands.
func count(n any) string { return grouped(fmt.Sprint(n)) }

func grouped(digits string) string {
	if len(digits) <= 3 {
		return digits
	}
	return grouped(digits[:len(digits)-3]) + "," + digits[len(digits)-3:]
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// sentence formats the text of an error as a sentence. A command stays as it is typed.
func sentence(text string) string {
	if strings.HasPrefix(text, "drover ") {
		return strings.TrimSuffix(text, ".") + "."
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// took formats a duration in its two largest units.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// spent formats how long something has taken; it is rounded while it goes on, so that a page does not change each
// second only for that.
func spent(from time.Time, to *time.Time, now time.Time) string {
	if to != nil {
		return took(to.Sub(from).Round(100 * time.Millisecond))
	}
	return took(rough(now.Sub(from)))
}

func rough(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Truncate(time.Second)
	case d < time.Minute:
		return d.Truncate(5 * time.Second)
	}
	return d.Truncate(time.Minute)
}

// until formats when something will change; empty if that is not known.
func until(t drover.Time, now time.Time) string {
	switch d := t.Std().Sub(now); {
	case t == 0:
		return ""
	case d <= 0:
		return "now"
	default:
		return "in " + took(max(rough(d), time.Second))
	}
}

// clock formats a time of today without its date, and others with it.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("Jan 2 15:04")
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// percent returns a part of a whole in percent, at most 100.
func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return math.Round(min(1, part/whole)*1000) / 10
}

// command formats a command line that a shell would parse into the same words.
func command(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w == "" || strings.ContainsAny(w, " \t\n\"'$\\|&;<>(){}*?!`~#") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		b.WriteString(w)
	}
	return drover.SanitizeLines(b.String())
}

// kind formats the kind of a pool; empty for one that is no longer configured.
func kind(k drover.PoolKind) string {
	if k == drover.PoolGroup {
		return "node group"
	}
	return string(k)
}
