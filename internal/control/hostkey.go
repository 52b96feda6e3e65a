package control

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/internal/remote"
)

// claimant is the instance that should answer at an address.
type claimant struct {
	driver.Instance
	name   string
	pinned string // fingerprint of the key that was proved before; empty: none was
	cloud  driver.Cloud
	key    remote.FleetKey
}

// verify checks a host key: against the pinned one, else the planted one, else by the cloud's word, which may need
// the output of a command. A key that is proved by a planted secret cannot be verified here. There is no trust on
// first use.
func (c claimant) verify(ctx context.Context, key ssh.PublicKey, output []byte) error {
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
			err = drover.Errorf(drover.KindHostKey, "it was given %s", want.Fingerprint)
		}
		return err
	case driver.HostKeysVerified:
		err := c.cloud.VerifyHostKey(ctx, c.Instance, key.Marshal(), output)
		if first := (*driver.RunFirst)(nil); errors.As(err, &first) {
			return &remote.RunFirst{Command: first.Command}
		}
		if err != nil {
			return fmt.Errorf("verifying the host key of %s: %w", c.name, err)
		}
		return nil
	case driver.HostKeysSecret:
		return drover.Errorf(drover.KindUnsupported, "a planted secret proves it")
	}
	return drover.Errorf(drover.KindHostKey, "its host key cannot be verified: the driver has no way to do so")
}
