package remote

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// covers D25
func TestLoginKeys(t *testing.T) {
	folder := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	good := file("good", pem.EncodeToMemory(plain), 0o600)
	for _, c := range []struct{ name, path, want string }{
		{"a key without a passphrase is accepted", good, ""},
		{"a key that others may read is refused", file("open", pem.EncodeToMemory(plain), 0o644), "can be read by others"},
		{"a key with a passphrase is refused", file("locked", pem.EncodeToMemory(locked), 0o600), "has a passphrase"},
		{"a file without a key is refused", file("text", []byte("hello"), 0o600), "is not a private key"},
		{"a missing file is refused", filepath.Join(folder, "none"), "no such file"},
		{"a pipe is refused at once", pipe, "is not a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, err := LoadLoginKeys([]string{good, c.path})
			switch {
			case c.want == "" && (err != nil || len(keys) != 2):
				t.Errorf("got %d keys, %v", len(keys), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}
