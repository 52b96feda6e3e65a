package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
)

// reach creates an instance and waits until the right key can log in.
func (t *trial) reach(ctx context.Context) (driver.Instance, error) {
	if t.NoLogin {
		return driver.Instance{}, skip("this cloud boots no instances")
	}
	return t.reachRequested(ctx, t.request())
}

func (t *trial) reachRequested(ctx context.Context, r driver.CreateRequest) (driver.Instance, error) {
	in, _, err := t.create(ctx, r)
	if err != nil {
		return in, err
	}
	return t.letIn(ctx, in)
}

// letIn waits until the planted key can log in to an instance, and returns the instance as listed then.
func (t *trial) letIn(ctx context.Context, in driver.Instance) (driver.Instance, error) {
	var last error
	err := t.eventually(ctx, "the installed key can log in", func(ctx context.Context) (bool, error) {
		all, err := t.list(ctx, t.fleetTags())
		if err != nil {
			return false, err
		}
		if listed, ok := all[in.ID]; ok {
			in = listed
		}
		attempt, cancel := context.WithTimeout(ctx, loginTime)
		defer cancel()
		last = t.login(attempt, in, t.key)
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

// login only verifies the host key and authenticates.
func (t *trial) login(ctx context.Context, in driver.Instance, key ssh.Signer) error {
	client, err := t.dial(ctx, in, key)
	if err != nil {
		return err
	}
	return client.Close()
}

// where returns the address and user of an instance's login; no address if it has none yet.
func (t *trial) where(in driver.Instance) (address, user string) {
	if t.Reach != nil {
		return t.Reach(in)
	}
	address = cmp.Or(in.Addresses.Public, in.Addresses.Private)
	if _, _, err := net.SplitHostPort(address); err != nil && address != "" {
		address = net.JoinHostPort(address, "22")
	}
	return address, in.Addresses.User
}

// dial logs in. The connection ends with ctx.
func (t *trial) dial(ctx context.Context, in driver.Instance, key ssh.Signer) (*ssh.Client, error) {
	address, user := t.where(in)
	if address == "" {
		return nil, errors.New("the instance has no address")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	var refused, proof error
	var hostKey []byte
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyAlgorithms: t.hostKeyAlgorithms(),
		HostKeyCallback: func(_ string, _ net.Addr, offered ssh.PublicKey) error {
			hostKey = offered.Marshal()
			refused, proof = t.judge(ctx, in, offered)
			return refused
		},
	})
	if err != nil {
		conn.Close()
		return nil, cmp.Or(refused, err)
	}
	client := ssh.NewClient(c, channels, requests)
	if err := t.prove(ctx, client, in, hostKey, proof); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// prove verifies a host key over an authenticated connection, if that is still to be done: proof is the driver's answer
// before the login.
func (t *trial) prove(ctx context.Context, client *ssh.Client, in driver.Instance, key []byte, proof error) error {
	first := (*driver.RunFirst)(nil)
	switch {
	case t.NoCommands:
		return nil
	case errors.As(proof, &first):
		out, err := output(client, first.Command)
		if err != nil {
			return fmt.Errorf("run the command that verifies the host key: %w", err)
		}
		return t.cloud.VerifyHostKey(ctx, in, key, append([]byte{}, out...))
	case t.cloud.Capabilities().HostKeys == driver.HostKeysSecret:
		out, err := output(client, `cat "${`+driver.SecretVariable+":-"+driver.SecretFile+`}"`)
		if err != nil {
			return fmt.Errorf("the secret that the init script installs does not exist yet: %w", err)
		}
		if strings.TrimSpace(string(out)) != t.secret {
			return drover.Errorf(drover.KindHostKey, "instance %s has a different secret from the installed one", in.ID)
		}
	}
	return nil
}

func output(client *ssh.Client, command string) ([]byte, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Output(command)
}

// hostKeyAlgorithms returns the planted key's algorithm, if a key is planted: a server may offer algorithms for which
// it has other keys. Nil: all.
func (t *trial) hostKeyAlgorithms() []string {
	if t.cloud.Capabilities().HostKeys == driver.HostKeysPlanted {
		return []string{ssh.KeyAlgoED25519}
	}
	return nil
}

// judge verifies an offered host key by the method that the driver declares. What cannot be verified before the login
// is left to prove, with the driver's answer.
func (t *trial) judge(ctx context.Context, in driver.Instance, offered ssh.PublicKey) (refused, proof error) {
	if t.cloud.Capabilities().HostKeys == driver.HostKeysPlanted && string(offered.Marshal()) != string(t.hostKey.PublicKey().Marshal()) {
		return drover.Errorf(drover.KindHostKey, "instance %s has a different host key from the installed one", in.ID), nil
	}
	err := t.cloud.VerifyHostKey(ctx, in, offered.Marshal(), nil)
	if _, ok := errors.AsType[*driver.RunFirst](err); ok {
		return nil, err
	}
	if err != nil && drover.KindOf(err) == drover.KindUnsupported && t.cloud.Capabilities().HostKeys != driver.HostKeysVerified {
		return nil, nil
	}
	return err, nil
}

// loginTime limits one attempt to log in; a port may accept a connection long before anything answers there.
const loginTime = 20 * time.Second

// The file to which the init scripts of checkInit write a line each.
const initFile = `"${TMPDIR:-/tmp}/drover-check"`

func checkInit(ctx context.Context, t *trial) error {
	if t.NoLogin || t.NoCommands {
		return skip("this cloud boots no instances")
	}
	r := t.request()
	r.Init = t.init("#!/bin/sh\necho own >>" + initFile + "\n")
	r.UserInit = drover.NewSecret("#!/bin/sh\necho added >>" + initFile + "\n")
	in, err := t.reachRequested(ctx, r)
	if err != nil {
		return err
	}
	said := ""
	err = t.eventually(ctx, "both init scripts have run", func(ctx context.Context) (bool, error) {
		out, code, err := t.command(ctx, in, "sort "+initFile+"; exit 7")
		if err == nil && code != 7 {
			err = fmt.Errorf("a command that exits with 7 is reported to have exited with %d", code)
		}
		said = out
		return out == "added\nown\n", err
	})
	if err != nil {
		return fmt.Errorf("%w; the file contains %.200q", err, said)
	}
	return nil
}

// command runs a command on an instance.
func (t *trial) command(ctx context.Context, in driver.Instance, command string) (out string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	client, err := t.dial(ctx, in, t.key)
	if err != nil {
		return "", 0, fmt.Errorf("log in: %w", err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", 0, fmt.Errorf("open a session: %w", err)
	}
	text, err := session.Output(command)
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		return string(text), exit.ExitStatus(), nil
	}
	if err != nil {
		err = fmt.Errorf("run a command: %w", err)
	}
	return string(text), 0, err
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
		return errors.New("a key that was never installed can log in")
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
	err = t.cloud.VerifyHostKey(ctx, in, stranger.PublicKey().Marshal(), nil)
	if _, ok := errors.AsType[*driver.RunFirst](err); ok { // not the output of any instance
		err = t.cloud.VerifyHostKey(ctx, in, stranger.PublicKey().Marshal(), []byte{})
	}
	return wantKind("verifying an unknown host key", err, kinds...)
}
