package remote

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"drover"
)

func same(a, b FleetKey) bool { return a.secret.Reveal() == b.secret.Reveal() }

func TestFleetKeyFile(t *testing.T) {
	t.Run("a missing key is created, private to its owner, and found again", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fleet.key")
		made, err := LoadOrCreateFleetKey(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if again, err := LoadOrCreateFleetKey(path); err != nil || !same(again, made) {
			t.Errorf("another key, %v", err)
		}
	})
	t.Run("concurrent callers get one key and leave no other file", func(t *testing.T) {
		folder := t.TempDir()
		keys := make([]FleetKey, 20)
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				var err error
				if keys[i], err = LoadOrCreateFleetKey(filepath.Join(folder, "key")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, k := range keys {
			if !same(k, keys[0]) {
				t.Fatal("two keys")
			}
		}
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	})
	t.Run("two fleets have two keys", func(t *testing.T) {
		a, errA := LoadOrCreateFleetKey(filepath.Join(t.TempDir(), "key"))
		b, errB := LoadOrCreateFleetKey(filepath.Join(t.TempDir(), "key"))
		if errA != nil || errB != nil || same(a, b) {
			t.Error(errA, errB)
		}
	})
	t.Run("a key that others may read is refused with a hint", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, make([]byte, fleetKeySize), 0o640); err != nil {
			t.Fatal(err)
		}
		_, err := LoadOrCreateFleetKey(path)
		if e := drover.AsError(err, ""); e.Kind != drover.KindForbidden || !strings.Contains(e.Hint, "chmod 600") {
			t.Errorf("%v (%v)", err, e.Kind)
		}
	})
	for _, size := range []int{0, fleetKeySize - 1, fleetKeySize + 1} {
		t.Run("a file of the wrong size is refused", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadOrCreateFleetKey(path); drover.KindOf(err) != drover.KindInvalid {
				t.Error(err)
			}
		})
	}
}

// covers D6 K13
func TestDerivedKeys(t *testing.T) {
	key := testKey()
	host, err := key.HostKey("i-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the private host key matches the public key and the fingerprint", func(t *testing.T) {
		signer, err := ssh.ParsePrivateKey([]byte(host.Private.Reveal()))
		if err != nil {
			t.Fatal(err)
		}
		public := signer.PublicKey()
		if string(public.Marshal()) != string(host.Public) || ssh.FingerprintSHA256(public) != host.Fingerprint {
			t.Error("they differ")
		}
	})
	t.Run("each instance has its own host key, always the same", func(t *testing.T) {
		again, err1 := key.HostKey("i-1")
		other, err2 := key.HostKey("i-2")
		if err1 != nil || err2 != nil || again.Fingerprint != host.Fingerprint || other.Fingerprint == host.Fingerprint {
			t.Error(err1, err2)
		}
		if again.Private.Reveal() != host.Private.Reveal() {
			t.Error("its text differs, so EC2 would refuse a repeated create request")
		}
	})
	t.Run("the login key is neither a host key nor another fleet's", func(t *testing.T) {
		login := string(key.LoginKey().PublicKey().Marshal())
		unnamed, err := key.HostKey("")
		if err != nil || login == string(unnamed.Public) {
			t.Error("it is a host key", err)
		}
		if login == string(FleetKey{drover.NewSecret("another")}.LoginKey().PublicKey().Marshal()) {
			t.Error("it is another fleet's")
		}
	})
	t.Run("the authorized_keys line has the login key", func(t *testing.T) {
		public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key.AuthorizedKey()))
		if err != nil || string(public.Marshal()) != string(key.LoginKey().PublicKey().Marshal()) {
			t.Error(err)
		}
	})
}

// covers D8
func TestAttemptTokens(t *testing.T) {
	key := testKey()
	id := drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 2}
	token := key.AttemptToken("store", id).Reveal()
	t.Run("a token names its attempt", func(t *testing.T) {
		if got, err := key.VerifyAttemptToken("store", token); err != nil || got != id {
			t.Error(got, err)
		}
	})
	name, proof, _ := strings.Cut(token, tokenMark)
	for what, forged := range map[string]string{
		"nothing":                   "",
		"no proof":                  name,
		"an empty proof":            name + tokenMark,
		"another attempt's proof":   "17.3/1" + tokenMark + proof,
		"another spelling":          "017.3/2" + tokenMark + proof,
		"a shorter proof":           token[:len(token)-1],
		"a longer proof":            token + "A",
		"the proof of lost records": key.AttemptToken("other", id).Reveal(),
		"another fleet's proof":     FleetKey{drover.NewSecret("another")}.AttemptToken("store", id).Reveal(),
		"an invalid attempt id":     "x" + tokenMark + proof,
	} {
		t.Run(what+" is refused", func(t *testing.T) {
			if _, err := key.VerifyAttemptToken("store", forged); drover.KindOf(err) != drover.KindAuthentication {
				t.Error(err)
			}
		})
	}
}

func TestAttemptProofs(t *testing.T) {
	key := testKey()
	id := drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 2}
	proof := key.AttemptProof("store", "lab-store-1", id)
	if by := key.AttemptProvedBy(proof, "lab-store-1", id); by != "store" {
		t.Errorf("the proof is from records %q", by)
	}
	if by := key.AttemptProvedBy(key.AttemptProof("lost", "lab-store-1", id), "lab-store-1", id); by != "lost" {
		t.Errorf("the proof of lost records is from records %q", by)
	}
	later := id
	later.Number++
	for what, by := range map[string]string{
		"nothing":                     key.AttemptProvedBy("", "lab-store-1", id),
		"a proof on another instance": key.AttemptProvedBy(proof, "lab-store-2", id),
		"a proof of another attempt":  key.AttemptProvedBy(proof, "lab-store-1", later),
		"a proof by another store":    key.AttemptProvedBy("other"+strings.TrimPrefix(proof, "store"), "lab-store-1", id),
		"a proof cut short":           key.AttemptProvedBy(proof[:len(proof)-1], "lab-store-1", id),
		"a proof of another fleet":    FleetKey{drover.NewSecret("another")}.AttemptProvedBy(proof, "lab-store-1", id),
		"a token, which jobs know":    key.AttemptProvedBy(key.AttemptToken("store", id).Reveal(), "lab-store-1", id),
	} {
		if by != "" {
			t.Errorf("%s is accepted as a proof from records %q", what, by)
		}
	}
}

// FuzzAttemptToken checks that any token is refused, unless it is byte for byte the token of the attempt that it names.
func FuzzAttemptToken(f *testing.F) {
	key := FleetKey{drover.NewSecret("key")}
	id := drover.AttemptID{Job: drover.JobID{Number: 17, Index: 3}, Number: 1}
	for _, s := range []string{"", "~", "17.3/1~", key.AttemptToken("store", id).Reveal(), "0" + key.AttemptToken("store", id).Reveal(), "17.3/1~" + strings.Repeat("A", 43), "a~b~c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := key.VerifyAttemptToken("store", token)
		if err == nil && key.AttemptToken("store", got).Reveal() != token {
			t.Errorf("%q is accepted as a token of attempt %v", token, got)
		}
		if err != nil && drover.KindOf(err) != drover.KindAuthentication {
			t.Errorf("%q: %v", token, err)
		}
	})
}
