package remote

import (
	"context"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

func TestSinceHeard(t *testing.T) {
	target := realInstance(t)
	ctx := testContext(t)
	if _, err := SinceHeard(ctx, target); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("before there is a runner: %v", err)
	}
	c, err := Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Order(wire.Orders{}); err != nil {
		t.Fatal(err)
	}
	var silence time.Duration
	waitUntil(t, "a controller was heard", func() bool {
		silence, err = SinceHeard(ctx, target)
		return err == nil
	})
	if silence > time.Minute {
		t.Errorf("the silence is %v", silence)
	}
	if err := c.Stop(attempt(1), 0); err != nil {
		t.Errorf("the other connection broke: %v", err)
	}
	target.VerifyHostKey = func(context.Context, ssh.PublicKey, []byte) error { return drover.Errorf(drover.KindHostKey, "no") }
	if _, err := SinceHeard(ctx, target); drover.KindOf(err) != drover.KindHostKey {
		t.Errorf("for another instance: %v", err)
	}
}

func TestReadLastHeard(t *testing.T) {
	const clock = "noise\n" + presentWord + "\n1798855445\n" // 2027-01-02 02:04:05 UTC
	for text, want := range map[string]time.Duration{
		clock + "2027-01-02T02:03:05Z\n": time.Minute,
		clock + "2027-01-02T05:00:00Z\n": 0, // its clock was set back
	} {
		if got, err := readLastHeard([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]drover.ErrorKind{
		clock:                 drover.KindNotFound,
		clock + "yesterday\n": drover.KindTransient,
		presentWord + "\nnow\n2027-01-02T02:03:05Z\n": drover.KindTransient,
		"": drover.KindTransient,
	} {
		if got, err := readLastHeard([]byte(text)); drover.KindOf(err) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
