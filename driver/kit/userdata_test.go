package kit_test

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers K10
func TestUserData(t *testing.T) {
	r := driver.CreateRequest{
		Init: drover.NewSecret("#!/bin/sh\ntrue\n"), HostKey: drover.NewSecret("-----BEGIN\nabc\n-----END\n"), PublicKey: "ssh-ed25519 AAAA fleet\n",
		UserInit: drover.NewSecret("#cloud-config\npackages: [ü]\n"),
	}
	text := kit.UserData(r).Reveal()
	t.Run("equal requests give equal texts", func(t *testing.T) {
		if kit.UserData(r).Reveal() != text {
			t.Error("the texts differ")
		}
	})
	t.Run("the text is a valid MIME message", func(t *testing.T) {
		got := parts(t, text)
		want := []string{
			"text/cloud-config||#cloud-config\nssh_deletekeys: true\nssh_keys:\n  ed25519_private: |\n    -----BEGIN\n    abc\n    -----END\n" +
				"ssh_authorized_keys:\n  - ssh-ed25519 AAAA fleet\n",
			"text/x-shellscript||#!/bin/sh\ntrue\n",
			"text/cloud-config|list(append)+dict(no_replace,recurse_dict,recurse_list)+str()|#cloud-config\npackages: [ü]\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// parts reads a MIME message and returns each part's type, merge type and text.
func parts(t *testing.T, text string) (all []string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	drivertest.Must(t, err)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	drivertest.Must(t, err)
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return all
		}
		drivertest.Must(t, err)
		body, err := io.ReadAll(p)
		if p.Header.Get("Content-Transfer-Encoding") == "base64" && err == nil {
			body, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(string(body), "\n", ""))
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		drivertest.Must(t, err)
		all = append(all, kind+"|"+p.Header.Get("Merge-Type")+"|"+string(body))
	}
}
