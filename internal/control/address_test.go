package control

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// covers D25
func TestTheConfiguredAddressIsDialled(t *testing.T) {
	both := driver.Addresses{Public: "203.0.113.7", Private: "10.0.0.7"}
	for address, want := range map[string][3]string{ // with both, without the public one, without the private one
		"public":  {both.Public, "", both.Public},
		"private": {both.Private, both.Private, ""},
		"":        {both.Public, both.Private, both.Public},
	} {
		for i, a := range []driver.Addresses{both, {Private: both.Private}, {Public: both.Public}} {
			if got := pick(SSH{Address: address}, a); got != want[i] {
				t.Errorf("address %q of %+v: got %q, want %q", address, a, got, want[i])
			}
		}
	}
}

func TestAGangGetsHostsWithoutPorts(t *testing.T) {
	gang := []string{"10.0.0.7", "", "203.0.113.8:2222", "fd00::7", "[fd00::8]:22"}
	if got, want := hosts(gang), "10.0.0.7,,203.0.113.8,fd00::7,fd00::8"; got != want {
		t.Errorf("hosts are %s, not %s", got, want)
	}
}

// covers D6
func TestAHostKeyOtherThanThePinnedOneIsRefused(t *testing.T) {
	pinned, other := hostKey(t), hostKey(t)
	c := identity{name: "f-n-1", pinned: ssh.FingerprintSHA256(pinned)} // no cloud: it must not be consulted
	if err := c.verify(t.Context(), pinned, nil); err != nil {
		t.Errorf("the pinned key was refused: %v", err)
	}
	err := c.verify(t.Context(), other, nil)
	if refused := (*drover.Error)(nil); !errors.As(err, &refused) || refused.Kind != drover.KindHostKey {
		t.Errorf("another key returned %v", err)
	}
}

func hostKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return must(ssh.NewPublicKey(public))(t)
}
