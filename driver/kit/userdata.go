package kit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"drover"
	"drover/driver"
)

// initKinds are the formats that cloud-init reads, by their first characters. See "User-data formats" in cloud-init's
// documentation.
var initKinds = []struct{ begins, mime string }{
	{"#cloud-config", "text/cloud-config"},
	{"#!", "text/x-shellscript"},
	{"#cloud-boothook", "text/cloud-boothook"},
	{"#include", "text/x-include-url"},
	{"## template: jinja", "text/jinja2"},
}

func initKind(text string) string {
	for _, k := range initKinds {
		if strings.HasPrefix(text, k.begins) {
			return k.mime
		}
	}
	return ""
}

// mergeHow adds the user's settings to Drover's without replacing any: lists are joined, and of two single values
// Drover's stays.
const mergeHow = "list(append)+dict(no_replace,recurse_dict,recurse_list)+str()"

// UserData returns the text for cloud-init: Drover's settings (the host key, the key that may log in), its script, and
// the user's additions, as one MIME message. Equal requests give equal texts, since clouds compare a repeated create
// call with the first.
func UserData(r driver.CreateRequest) drover.Secret {
	parts := []part{{"text/cloud-config", "", settings(r)}}
	if r.Init.Reveal() != "" {
		parts = append(parts, part{"text/x-shellscript", "", r.Init.Reveal()})
	}
	for _, init := range []drover.Secret{r.UserInit, r.PoolInit} {
		if text := init.Reveal(); text != "" {
			parts = append(parts, part{initKind(text), mergeHow, text})
		}
	}
	return drover.NewSecret(message(parts))
}

// settings are Drover's own, for cloud-init's modules ssh and users.
func settings(r driver.CreateRequest) string {
	var b strings.Builder
	b.WriteString("#cloud-config\n")
	if key := r.HostKey.Reveal(); key != "" {
		b.WriteString("ssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n")
		for line := range strings.Lines(strings.TrimSpace(key) + "\n") {
			b.WriteString("    " + line)
		}
	}
	if r.PublicKey != "" {
		fmt.Fprintf(&b, "ssh_authorized_keys:\n  - %s\n", strings.TrimSpace(r.PublicKey))
	}
	return b.String()
}

type part struct{ mime, merge, text string }

// lineWidth is the longest line of base64 (RFC 2045).
const lineWidth = 76

func message(parts []part) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s %d %s", p.mime, len(p.text), p.text)
	}
	boundary := "drover-" + hex.EncodeToString(sum.Sum(nil)[:12])
	var b strings.Builder
	fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=%q\nMIME-Version: 1.0\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\nContent-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\n", boundary, p.mime)
		if p.merge != "" {
			fmt.Fprintf(&b, "Merge-Type: %s\n", p.merge)
		}
		b.WriteString(encoded(p.text))
	}
	fmt.Fprintf(&b, "--%s--\n", boundary)
	return b.String()
}

// encoded returns the end of a part's header and its text: unchanged if mail could carry it, otherwise in base64.
func encoded(text string) string {
	if isPlain(text) {
		return "Content-Transfer-Encoding: 7bit\n\n" + strings.TrimSuffix(text, "\n") + "\n\n"
	}
	var b strings.Builder
	b.WriteString("Content-Transfer-Encoding: base64\n\n")
	for rest := base64.StdEncoding.EncodeToString([]byte(text)); rest != ""; {
		n := min(len(rest), lineWidth)
		b.WriteString(rest[:n] + "\n")
		rest = rest[n:]
	}
	return b.String() + "\n"
}

// isPlain reports whether a text is ASCII in lines of at most 998 characters (RFC 5322), none of which ends in a
// carriage return.
func isPlain(text string) bool {
	for line := range strings.Lines(text) {
		if len(line) > 998 || strings.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' && r != '\t' }) {
			return false
		}
	}
	return true
}

// Scripts returns what an instance without cloud-init runs at its first boot, in this order: Drover's script, the
// user's, then the pool's.
func Scripts(r driver.CreateRequest) (all []drover.Secret) {
	for _, s := range []drover.Secret{r.Init, r.UserInit, r.PoolInit} {
		if s.Reveal() != "" {
			all = append(all, s)
		}
	}
	return all
}

// ownInit is the size that Drover may add to a user's init text. The size is checked before any instance has a name.
const ownInit = 4 << 10

// CheckInit returns KindInvalid for a user's init text that instances could not run, or that is larger than max bytes
// together with Drover's part; 0: no limit.
func CheckInit(text string, runs driver.Init, max int) error {
	kind := initKind(text)
	switch {
	case text == "":
		return nil
	case kind == "":
		return drover.Errorf(drover.KindInvalid, "cloud_init begins with %.20q, which is not a known format", text).
			WithHint("begin it with #cloud-config or, for a script, with #!/bin/sh")
	case runs != driver.InitCloud && kind != "text/x-shellscript" && (runs != driver.InitBoots || kind != "text/cloud-boothook"):
		return drover.Errorf(drover.KindInvalid, "cloud_init: instances of this driver have no cloud-init and only run scripts").
			WithHint("write a script that begins with #!/bin/sh")
	}
	size := len(text) + ownInit
	if runs == driver.InitCloud {
		size = len(encoded(text)) + ownInit
	}
	if max > 0 && size > max {
		return drover.Errorf(drover.KindInvalid, "cloud_init has %d bytes, and up to %d with Drover's part, but this cloud's limit is %d", len(text), size, max).
			WithHint("let it download large parts when the instance boots")
	}
	return nil
}
