package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/internal/remote"
)

// target returns where and as whom to log in to an instance, and how to verify it.
func (cl Cloud) target(who identity) remote.Target {
	address, user := cl.Reach(who.Instance)
	var proof remote.Proof
	if who.pinned == "" && who.cloud.Capabilities().HostKeys == driver.HostKeysSecret {
		proof = remote.Proof{Path: driver.SecretFile, Variable: driver.SecretVariable, Secret: who.key.BootSecret(who.name)}
	}
	return remote.Target{
		Proof:         proof,
		Address:       address,
		User:          user,
		Signers:       append(slices.Clone(cl.SSH.Keys), who.key.LoginKey()),
		VerifyHostKey: who.verify,
		RunnerDir:     cl.Folder,
	}
}

// Reach returns the host and port of an instance's sshd, and its login user; no address while the cloud has none.
func (cl Cloud) Reach(in driver.Instance) (address, user string) {
	user = cmp.Or(cl.SSH.User, in.Addresses.User, "root")
	host := pick(cl.SSH, in.Addresses)
	if _, _, err := net.SplitHostPort(host); err == nil || host == "" {
		return host, user
	}
	return net.JoinHostPort(host, strconv.Itoa(cmp.Or(cl.SSH.Port, 22))), user
}

func pick(s SSH, a driver.Addresses) string {
	switch s.Address {
	case "public":
		return a.Public
	case "private":
		return a.Private
	}
	return cmp.Or(a.Public, a.Private)
}

// SinceHeard asks an instance, after verifying its host key, how long ago it last heard from a controller. It disturbs
// neither the instance nor its controller. KindNotFound: it never heard from one. Any other error: it could not be
// asked.
func SinceHeard(ctx context.Context, key remote.FleetKey, cl Cloud, in driver.Instance) (time.Duration, error) {
	if address, _ := cl.Reach(in); address == "" {
		return 0, drover.Errorf(drover.KindUnreachable, "its address is not known")
	}
	return remote.SinceHeard(ctx, cl.target(identity{Instance: in, name: in.Tags[driver.TagName], cloud: cl.Driver, key: key}))
}

// identity is the instance that should answer at an address.
type identity struct {
	driver.Instance
	name   string
	pinned string // fingerprint of the key verified before; empty: none
	cloud  driver.Cloud
	key    remote.FleetKey
}

// verify checks a host key: against the pinned one, otherwise the installed one, otherwise against the cloud's, which
// may need the output of a command. A key that is proven by an installed secret cannot be verified here. There is no
// trust on first use.
func (c identity) verify(ctx context.Context, key ssh.PublicKey, output []byte) error {
	got := ssh.FingerprintSHA256(key)
	if c.pinned != "" {
		if got != c.pinned {
			return drover.Errorf(drover.KindHostKey, "its host key has changed: it was %s", c.pinned)
		}
		return nil
	}
	switch c.cloud.Capabilities().HostKeys {
	case driver.HostKeysPlanted:
		want, err := c.key.HostKey(c.name)
		if err == nil && got != want.Fingerprint {
			err = drover.Errorf(drover.KindHostKey, "Drover installed host key %s", want.Fingerprint)
		}
		return err
	case driver.HostKeysVerified:
		err := c.cloud.VerifyHostKey(ctx, c.Instance, key.Marshal(), output)
		if first, ok := errors.AsType[*driver.RunFirst](err); ok {
			return &remote.RunFirst{Command: first.Command}
		}
		if err != nil {
			return fmt.Errorf("verifying the host key of %s: %w", c.name, err)
		}
		return nil
	case driver.HostKeysSecret:
		return drover.Errorf(drover.KindUnsupported, "its host key is verified by an installed secret")
	}
	return drover.Errorf(drover.KindHostKey, "its host key cannot be verified: the driver has no way to do so")
}
