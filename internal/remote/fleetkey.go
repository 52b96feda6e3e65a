package remote

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"drover"
)

// fleetKeySize is the length of a fleet key and of its file.
const fleetKeySize = 32

// FleetKey is the one secret of a fleet. The identities of the fleet, its instances and its attempts are derived from
// it, each with its own label, so a lost database does not lose instances. The zero FleetKey is not a key.
type FleetKey struct{ secret drover.Secret }

// LoadOrCreateFleetKey reads the fleet key at path, or makes one if there is no file. If several callers make one at
// once, one wins and all get its key. It refuses a file that anyone but its owner may read or write.
func LoadOrCreateFleetKey(path string) (FleetKey, error) {
	key, err := loadFleetKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createFleetKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return FleetKey{}, fmt.Errorf("creating the fleet key: %w", err)
	}
	return loadFleetKey(path)
}

func loadFleetKey(path string) (FleetKey, error) {
	key, err := readPrivate(path, fleetKeySize)
	if err != nil {
		return FleetKey{}, fmt.Errorf("reading the fleet key: %w", err)
	}
	if len(key) != fleetKeySize {
		return FleetKey{}, drover.Errorf(drover.KindInvalid, "%s is not a fleet key: it is not %d bytes long", path, fleetKeySize)
	}
	return FleetKey{drover.NewSecret(string(key))}, nil
}

// createFleetKey makes the whole file or none: a hard link cannot replace a file that another process has made since.
func createFleetKey(path string) error {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".fleet-key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, fleetKeySize)
	rand.Read(key)
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// derive makes 32 bytes that only the holder of the key can make. Labels contain no zero byte, so no two pairs of label
// and name collide.
func (k FleetKey) derive(label, name string) []byte {
	mac := hmac.New(sha256.New, []byte(k.secret.Reveal()))
	io.WriteString(mac, label+"\x00"+name)
	return mac.Sum(nil)
}

// LoginKey returns the key with which the fleet logs in to its instances.
func (k FleetKey) LoginKey() ssh.Signer {
	signer, err := ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(k.derive("login key", "")))
	if err != nil {
		panic("remote: ed25519 keys always make signers: " + err.Error())
	}
	return signer
}

// maxKeyFile bounds a file that holds a login key.
const maxKeyFile = 64 << 10

// LoadLoginKeys reads private keys without a passphrase from files in any form that OpenSSH writes. It refuses a file
// that anyone but its owner may read or write.
func LoadLoginKeys(paths []string) (keys []ssh.Signer, err error) {
	for _, path := range paths {
		text, err := readPrivate(path, maxKeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading a login key: %w", err)
		}
		key, err := ssh.ParsePrivateKey(text)
		var locked *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &locked):
			return nil, drover.Errorf(drover.KindInvalid, "the login key %s has a passphrase, which Drover cannot enter", path).
				WithHint("ssh-keygen -p -f %s removes it", path)
		case err != nil:
			return nil, drover.Errorf(drover.KindInvalid, "%s is not a private key", path).WithHint("use the file without .pub")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readPrivate reads at most limit+1 bytes of a file that only its owner may access.
func readPrivate(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have no writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	mode := info.Mode()
	if !mode.IsRegular() {
		return nil, drover.Errorf(drover.KindInvalid, "%s is not a file", path)
	}
	if mode.Perm()&0o077 != 0 {
		return nil, drover.Errorf(drover.KindForbidden, "%s can be read by others (%v)", path, mode).
			WithHint("run chmod 600 %s; if others may already have read it, replace the key in it", path)
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// LoginKeyFile returns the private half of LoginKey in the format of a file for ssh(1), for people who log in
// themselves.
func (k FleetKey) LoginKeyFile() (drover.Secret, error) {
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(k.derive("login key", "")), "drover")
	if err != nil {
		return drover.Secret{}, fmt.Errorf("encoding the login key: %w", err)
	}
	return drover.NewSecret(string(pem.EncodeToMemory(block))), nil
}

// AuthorizedKey returns the public half of LoginKey as a line of an authorized_keys file, without the newline.
func (k FleetKey) AuthorizedKey() string {
	return AuthorizedKey(k.LoginKey()) + " drover"
}

// AuthorizedKey returns the public half of a login key as a line of an authorized_keys file, without the newline.
func AuthorizedKey(login ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(login.PublicKey())))
}

// HostKey is the identity of one instance.
type HostKey struct {
	Private     drover.Secret // in PEM
	Public      []byte        // in SSH wire format
	Fingerprint string        // "SHA256:…"
}

// HostKey derives the host key of the instance with that name. Names are never used twice, so neither are keys.
func (k FleetKey) HostKey(instance string) (HostKey, error) {
	key := ed25519.NewKeyFromSeed(k.derive("host key", instance))
	block, err := ssh.MarshalPrivateKey(key, instance)
	if err == nil {
		err = clearCheck(block.Bytes)
	}
	if err != nil {
		return HostKey{}, fmt.Errorf("encoding the host key of %s: %w", instance, err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return HostKey{}, fmt.Errorf("encoding the host key of %s: %w", instance, err)
	}
	return HostKey{drover.NewSecret(string(pem.EncodeToMemory(block))), public.Marshal(), ssh.FingerprintSHA256(public)}, nil
}

// clearCheck clears the random numbers in a private key that is not encrypted: two equal ones at the beginning of the
// last field, so that a reader notices a wrong passphrase. They would make each create request for an instance different,
// and EC2 refuses a repeated request that differs from the first.
func clearCheck(key []byte) error {
	var parts struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public, Private      []byte
	}
	if err := ssh.Unmarshal(bytes.TrimPrefix(key, []byte("openssh-key-v1\x00")), &parts); err != nil {
		return err
	}
	start := len(key) - len(parts.Private)
	clear(key[start : start+8])
	return nil
}
