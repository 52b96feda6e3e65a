package drivertest

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/backoff"
)

// The pauses between two queries of the cloud, growing from the first to the last.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 2 * time.Second
)

// trial is one running check: an open cloud and what was created in it.
type trial struct {
	Harness
	cloud      driver.Cloud
	candidates []driver.Candidate
	key        ssh.Signer // the key that may log in
	hostKey    ssh.Signer // of all instances of this trial
	hostPEM    string
	secret     string // planted if the driver verifies host keys by a secret

	mu   sync.Mutex
	made []string // ids, to be destroyed; guarded by mu
}

func (h Harness) begin(ctx context.Context) (*trial, error) {
	cloud, err := h.open(ctx, h.Fleet)
	if err != nil {
		return nil, fmt.Errorf("open the cloud: %w", err)
	}
	t := &trial{Harness: h, cloud: cloud, candidates: h.Request.Candidates}
	err = t.makeKeys()
	if err == nil && len(t.candidates) == 0 {
		err = t.cheapest(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, cloud.Close())
	}
	return t, nil
}

// end destroys everything that the trial created and everything else in its fleet, until none of it is listed.
func (t *trial) end(ctx context.Context) error {
	var listed map[string]driver.Instance
	patient := middleware.WithRetry(t.cloud) // without an engine, nothing else repeats a call
	err := t.eventually(ctx, "everything that was created is gone", func(ctx context.Context) (_ bool, err error) {
		listed, err = t.list(ctx, t.fleetTags())
		if own, ok := t.cloud.(*middleware.FleetCloud); ok {
			for _, id := range t.made { // another cloud may have created it, and no list contained it
				own.Adopt(id)
			}
		}
		ids := slices.Concat(t.made, slices.Collect(maps.Keys(listed)))
		for _, id := range ids {
			if failed := patient.Destroy(ctx, id); failed != nil {
				err = errors.Join(err, fmt.Errorf("destroy %s: %w", id, failed))
			}
		}
		if err != nil {
			return false, fmt.Errorf("clean up: %w", err)
		}
		t.made = nil
		return len(listed) == 0, nil
	})
	if err != nil && len(listed) > 0 {
		err = fmt.Errorf("%w; listed %s", err, told(listed))
	}
	return errors.Join(err, t.cloud.Close())
}

func (t *trial) makeKeys() (err error) {
	if t.key, _, err = newKey(); err != nil {
		return err
	}
	t.secret = newName()
	t.hostKey, t.hostPEM, err = newKey()
	return err
}

func newKey() (ssh.Signer, string, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, "", err
	}
	signer, err := ssh.NewSignerFromKey(private)
	return signer, string(pem.EncodeToMemory(block)), err
}

// cheapest chooses the cheapest offering in these markets, or in any if there is none in them.
func (t *trial) cheapest(ctx context.Context, markets ...drover.Market) error {
	all, err := t.cloud.Offerings(ctx)
	if err != nil {
		return fmt.Errorf("list the offerings: %w", err)
	}
	if len(all) == 0 {
		return errors.New("the cloud has no offerings")
	}
	o := slices.MinFunc(all, func(a, b drover.Offering) int {
		if in := slices.Contains(markets, a.Market); in != slices.Contains(markets, b.Market) {
			return map[bool]int{true: -1, false: 1}[in]
		}
		return cmp.Compare(a.Price, b.Price)
	})
	t.candidates = []driver.Candidate{{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market, Arch: o.Type.Resources.Arch}}
	return nil
}

func (t *trial) fleetTags() map[string]string { return map[string]string{driver.TagFleet: t.Fleet} }

// request returns a request for an instance with a new name.
func (t *trial) request() driver.CreateRequest {
	r := t.Request
	r.Name = newName()
	r.Candidates = slices.Clone(t.candidates)
	r.Tags = map[string]string{driver.TagFleet: t.Fleet, driver.TagName: r.Name}
	r.PublicKey = string(ssh.MarshalAuthorizedKey(t.key.PublicKey()))
	r.HostKey = drover.NewSecret(t.hostPEM)
	r.Init = t.init(r.Init.Reveal())
	return r
}

// init returns an init script, with the secret that proves the host key if the driver needs one.
func (t *trial) init(script string) drover.Secret {
	init := drover.NewSecret(script)
	if t.cloud.Capabilities().HostKeys == driver.HostKeysSecret {
		return driver.PlantSecret(drover.NewSecret(t.secret), init)
	}
	return init
}

func newName() string {
	var b [6]byte
	rand.Read(b[:])
	return "check-" + hex.EncodeToString(b[:])
}

func (t *trial) create(ctx context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	in, taken, err := t.cloud.Create(ctx, r)
	if err != nil {
		return in, taken, fmt.Errorf("create: %w", err)
	}
	t.note(in.ID)
	return in, taken, nil
}

func (t *trial) note(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, id)
}

// one creates an instance without special requirements.
func (t *trial) one(ctx context.Context) (driver.Instance, error) {
	in, _, err := t.create(ctx, t.request())
	return in, err
}

// list reads the cloud's list as every caller must: by tag, each id once.
func (t *trial) list(ctx context.Context, tags map[string]string) (map[string]driver.Instance, error) {
	return listOf(ctx, t.cloud, tags)
}

func listOf(ctx context.Context, c driver.Cloud, tags map[string]string) (map[string]driver.Instance, error) {
	all, err := c.List(ctx, tags)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	byID := map[string]driver.Instance{}
	for _, in := range all {
		if in.ID == "" {
			return nil, errors.New("list: an instance has no id")
		}
		if in.Bears(tags) {
			byID[in.ID] = in
		}
	}
	return byID, nil
}

// eventually calls ask until it returns true or an error, or Patience has run out.
func (t *trial) eventually(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	for range backoff.Tries(ctx, firstPause, lastPause) {
		done, err := ask(ctx)
		if done || err != nil && ctx.Err() == nil {
			return err
		}
	}
	if whole.Err() != nil {
		return fmt.Errorf("interrupted while waiting until %s", what)
	}
	return fmt.Errorf("timed out after %v, waiting until %s", t.Patience, what)
}

// listed waits until the list by these tags contains exactly this many instances.
func (t *trial) listed(ctx context.Context, tags map[string]string, n int) (map[string]driver.Instance, error) {
	what := fmt.Sprintf("the list filtered by tags %v has %d instances", tags, n)
	return t.untilListed(ctx, what, tags, func(all map[string]driver.Instance) (bool, error) { return len(all) == n, nil })
}

// untilListed waits until the list by these tags is right. An error contains the last list.
func (t *trial) untilListed(ctx context.Context, what string, tags map[string]string,
	right func(map[string]driver.Instance) (bool, error)) (last map[string]driver.Instance, err error) {
	err = t.eventually(ctx, what, func(ctx context.Context) (bool, error) {
		all, err := t.list(ctx, tags)
		if err != nil {
			return false, err
		}
		last = all
		return right(all)
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w; listed %s", err, told(last))
	}
	return last, err
}

// mostTold is how many instances an error names.
const mostTold = 10

// told formats instances for an error.
func told(all map[string]driver.Instance) string {
	var each []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		each = append(each, fmt.Sprintf("%s (%s, %v)", id, all[id].State, all[id].Tags))
	}
	if more := len(each) - mostTold; more > 0 {
		each = append(each[:mostTold], fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(each, ", "), "none")
}

// tidy waits until nothing is left of the fleet except what its instances share.
func (t *trial) tidy(ctx context.Context) error {
	reaper, can := driver.As[driver.Reaper](t.cloud)
	if !can {
		return nil
	}
	return t.eventually(ctx, "nothing is left behind except shared resources", func(ctx context.Context) (bool, error) {
		left, err := reaper.Leftovers(ctx, t.Fleet)
		return !slices.ContainsFunc(left, func(s driver.Leftover) bool { return !s.Shared }), err
	})
}

// wantKind returns nil if err is of one of the kinds.
func wantKind(doing string, err error, kinds ...drover.ErrorKind) error {
	var e *drover.Error
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded, want an error of kind %v", doing, kinds)
	case !errors.As(err, &e):
		return fmt.Errorf("%s: %q is not a *drover.Error; want one of kind %v", doing, err, kinds)
	case !slices.Contains(kinds, e.Kind):
		return fmt.Errorf("%s: %q is of kind %s, want %v", doing, err, e.Kind, kinds)
	}
	return nil
}

// wantTags returns nil if the instance has these tags; a cloud may add some of its own.
func wantTags(in driver.Instance, tags map[string]string) error {
	if !in.Bears(tags) {
		return fmt.Errorf("instance %s has the tags %v, want %v", in.ID, in.Tags, slices.Sorted(maps.Keys(tags)))
	}
	return nil
}
