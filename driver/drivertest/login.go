package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// reach makes an instance and waits until it lets the right key in.
func (t *trial) reach(ctx context.Context) (driver.Instance, error) {
	if t.NoLogin {
		return driver.Instance{}, skip("nothing is booted")
	}
	in, err := t.one(ctx)
	if err != nil {
		return in, err
	}
	var last error
	err = t.eventually(ctx, "the instance lets the planted key in", func(ctx context.Context) (bool, error) {
		all, err := t.list(ctx, t.fleetTags())
		if err != nil {
			return false, err
		}
		if listed, ok := all[in.ID]; ok {
			in = listed
		}
		last = t.login(ctx, in, t.key)
		if last != nil && drover.KindOf(last) == drover.KindHostKey {
			return true, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return in, err
}

// login proves the host key and authenticates, no more.
func (t *trial) login(ctx context.Context, in driver.Instance, key ssh.Signer) error {
	address := cmp.Or(in.Addresses.Public, in.Addresses.Private)
	if address == "" {
		return errors.New("it has no address")
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, "22")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var refused error
	c, _, _, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: in.Addresses.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: func(_ string, _ net.Addr, offered ssh.PublicKey) error {
			refused = t.judge(ctx, in, offered)
			return refused
		},
	})
	if err != nil {
		return cmp.Or(refused, err)
	}
	return c.Close()
}

// judge says whether an offered host key is the instance's, in the way that the driver declares.
func (t *trial) judge(ctx context.Context, in driver.Instance, offered ssh.PublicKey) error {
	if t.cloud.Capabilities().HostKeys == driver.HostKeysPlanted && string(offered.Marshal()) != string(t.hostKey.PublicKey().Marshal()) {
		return drover.Errorf(drover.KindHostKey, "instance %s offers another host key than the one planted in it", in.ID)
	}
	err := t.cloud.VerifyHostKey(ctx, in, offered.Marshal())
	if err != nil && drover.KindOf(err) == drover.KindUnsupported && t.cloud.Capabilities().HostKeys != driver.HostKeysVerified {
		return nil
	}
	return err
}

func checkLogin(ctx context.Context, t *trial) error {
	_, err := t.reach(ctx)
	return err
}

func checkStranger(ctx context.Context, t *trial) error {
	in, err := t.reach(ctx)
	if err != nil {
		return err
	}
	stranger, _, err := newKey()
	if err != nil {
		return err
	}
	if t.login(ctx, in, stranger) == nil {
		return errors.New("a key that was never planted logs in")
	}
	return nil
}

func checkHostKey(ctx context.Context, t *trial) error {
	in, err := t.one(ctx)
	if err != nil {
		return err
	}
	stranger, _, err := newKey()
	if err != nil {
		return err
	}
	kinds := []drover.ErrorKind{drover.KindHostKey, drover.KindUnsupported}
	if t.cloud.Capabilities().HostKeys == driver.HostKeysVerified {
		kinds = []drover.ErrorKind{drover.KindHostKey, drover.KindTransient}
	}
	return wantKind("verifying a host key of nobody's", t.cloud.VerifyHostKey(ctx, in, stranger.PublicKey().Marshal()), kinds...)
}
