package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// notation is how values of one type are written as a single word: how to parse them, and their schema.
type notation struct {
	parse  func(text string) (any, error)
	schema jsonschema.Schema
}

// scalarOf returns the notation of a type, if it has one.
func scalarOf(t reflect.Type) (notation, bool) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return notation{parseWith(ParseDuration), jsonschema.Schema{Types: []string{"string", "integer"}, Description: "a duration, such as 90s, 1h30m or 30d"}}, true
	case reflect.TypeFor[drover.Bytes]():
		return notation{parseWith(ParseSize), jsonschema.Schema{Types: []string{"string", "integer"}, Description: "a size, such as 512Mi or 16Gi"}}, true
	case reflect.TypeFor[drover.MilliCPU]():
		return notation{parseWith(drover.ParseMilliCPU), jsonschema.Schema{Types: []string{"number", "string"}, Description: "a number of vCPUs, such as 2 or 0.5"}}, true
	case reflect.TypeFor[drover.Money]():
		return notation{parseWith(drover.ParseMoney), jsonschema.Schema{Types: []string{"number", "string"}, Description: "an amount in USD"}}, true
	case reflect.TypeFor[drover.Secret]():
		return notation{parseWith(parseSecret), jsonschema.Schema{Type: "string", Pattern: `^(\$\{env:[A-Za-z_][A-Za-z0-9_]*\}|file:.+)$`}}, true
	case reflect.TypeFor[drover.SpotPolicy]():
		return oneOf(drover.SpotPrefer, drover.SpotRequire, drover.SpotNever), true
	case reflect.TypeFor[drover.Market]():
		return oneOf(drover.OnDemand, drover.Spot), true
	case reflect.TypeFor[drover.Arch]():
		return oneOf(drover.Arch("amd64"), "arm64"), true
	case reflect.TypeFor[AddressKind]():
		return oneOf(AddressPublic, AddressPrivate), true
	case reflect.TypeFor[Exceeded]():
		return oneOf(ExceededFinish, ExceededStop), true
	case reflect.TypeFor[drover.PoolSpread]():
		return oneOf(drover.SpreadBalanced, drover.SpreadCheapest), true
	case reflect.TypeFor[drover.PoolLogin]():
		return oneOf(drover.LoginSSH, drover.LoginNone), true
	case reflect.TypeFor[drover.Sharing]():
		return oneOf(drover.ShareUser, drover.ShareEveryone), true
	case reflect.TypeFor[Reuse]():
		return oneOf(ReuseAlways, ReuseNever), true
	case reflect.TypeFor[Runtime]():
		return oneOf(Docker, Podman), true
	}
	return notation{}, false
}

// parseWith erases the type that a parser returns.
func parseWith[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(text string) (any, error) { return parse(text) }
}

// oneOf returns the notation of a fixed set of words.
func oneOf[T ~string](words ...T) notation {
	var enum []any
	var known []string
	for _, w := range words {
		enum, known = append(enum, string(w)), append(known, string(w))
	}
	parse := func(text string) (any, error) {
		if i := slices.Index(known, text); i >= 0 {
			return words[i], nil
		}
		return nil, drover.Errorf(drover.KindInvalid, "%s is not one of %s", quote(text), strings.Join(known, ", ")).WithHint("%s", suggest(text, known))
	}
	return notation{parse, jsonschema.Schema{Type: "string", Enum: enum}}
}

// mostDays is the longest duration in days: a century.
const mostDays = 36_500

// ParseDuration parses a duration with its unit, such as 90s, 1h30m or 30d; 0 needs no unit. The error's hint suggests
// what may have been meant.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d >= 0 {
		return d, nil
	}
	wrong := drover.Errorf(drover.KindInvalid, "%s is not a duration (write, for example, 90s or 1h30m)", quote(text))
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(text[len(number):])
	count, notSmall := strconv.ParseUint(number, 10, 19)
	days, noDays := strconv.ParseFloat(number, 64)
	switch {
	case err == nil:
		return 0, drover.Errorf(drover.KindInvalid, "%s must not be negative", text)
	case text == number+"d" && noDays == nil && days >= 0 && days <= mostDays:
		return time.Duration(days * float64(24*time.Hour)), nil
	case notSmall != nil:
		return 0, wrong
	case unit == "":
		return 0, wrong.WithHint("%s has no unit; for seconds write %ss", text, text)
	case strings.HasPrefix("days", unit) && count <= mostDays:
		return 0, wrong.WithHint("write %dd", count)
	case strings.HasPrefix("weeks", unit) && 7*count <= mostDays:
		return 0, wrong.WithHint("write %dd", 7*count)
	case strings.HasPrefix("seconds", unit), strings.HasPrefix("minutes", unit), strings.HasPrefix("hours", unit):
		return 0, wrong.WithHint("write %d%s", count, unit[:1])
	}
	return 0, wrong
}

// ParseSize parses a size, such as 512Mi; only sizes from 1Mi need no unit. The error's hint suggests what may have been
// meant.
func ParseSize(text string) (drover.Bytes, error) {
	b, err := drover.ParseBytes(text)
	if n, plain := strconv.ParseFloat(text, 64); err == nil && plain == nil && n > 0 && b < drover.MiB {
		return 0, drover.Errorf(drover.KindInvalid, "the size %s has no unit", quote(text)).WithHint("write %[1]sMi or %[1]sGi", text)
	}
	if err == nil {
		return b, nil
	}
	wrong := drover.Errorf(drover.KindInvalid, "%s is not a size (write, for example, 512Mi or 16Gi)", quote(text))
	letters := strings.TrimLeft(text, "0123456789.")
	number := text[:len(text)-len(letters)]
	unit := strings.ToUpper(strings.TrimSpace(letters))
	if number == "" || unit == "" || !strings.Contains("KMGT", unit[:1]) {
		return 0, wrong
	}
	switch unit[1:] {
	case "", "B", "I", "IB":
		if one, _ := drover.ParseBytes("1" + letters); one > 0 && !strings.Contains(number, ".") {
			return 0, drover.Errorf(drover.KindInvalid, "the size %s is too large", quote(text))
		}
		return 0, wrong.WithHint("write %s%si (binary) or %s%s (decimal)", number, unit[:1], number, unit[:1])
	}
	return 0, wrong.WithHint("the units are Ki, Mi, Gi and Ti, or K, M, G and T")
}

// maxSecret limits the size of a file with a secret.
const maxSecret = 64 << 10

// secretSource is where a secret is kept.
type secretSource struct{ env, file string }

// parseSecret parses ${env:NAME} or file:PATH. It refuses a written-out secret, without repeating it.
func parseSecret(text string) (secretSource, error) {
	if name, ok := strings.CutPrefix(text, "${env:"); ok && envName.MatchString(strings.TrimSuffix(name, "}")) && strings.HasSuffix(name, "}") {
		return secretSource{env: strings.TrimSuffix(name, "}")}, nil
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok && path != "" {
		return secretSource{file: path}, nil
	}
	return secretSource{}, drover.Errorf(drover.KindInvalid, "a secret must not be in the file itself").
		WithHint("write ${env:NAME} for an environment variable, or file:PATH")
}

// read reads the secret, which must not be empty; a file's last line break is not part of it.
func (s secretSource) read(dir string) (drover.Secret, error) {
	if s.env != "" {
		text := os.Getenv(s.env)
		if text == "" {
			return drover.Secret{}, drover.Errorf(drover.KindInvalid, "the environment variable %s is unset or empty", s.env)
		}
		return drover.NewSecret(text), nil
	}
	file, err := open(resolve(dir, s.file))
	if err != nil {
		return drover.Secret{}, fmt.Errorf("reading a secret: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	text := strings.TrimRight(string(data), "\r\n")
	switch {
	case err != nil:
		return drover.Secret{}, fmt.Errorf("reading a secret: %w", err)
	case len(data) > maxSecret:
		return drover.Secret{}, drover.Errorf(drover.KindInvalid, "the secret in %s is larger than 64 KiB", s.file)
	case text == "":
		return drover.Secret{}, drover.Errorf(drover.KindInvalid, "the secret in %s is empty", s.file)
	}
	return drover.NewSecret(text), nil
}

// resolve makes a relative path relative to dir.
func resolve(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
