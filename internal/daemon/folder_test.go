package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover"
	"drover/internal/config"
)

// aFolder returns an existing folder, of a fleet called lab.
func aFolder(t *testing.T) Folder {
	t.Helper()
	c := config.Default("lab")
	c.State = filepath.Join(t.TempDir(), "drover.db")
	f, err := NewFolder(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Make(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDaemonFolder(t *testing.T) {
	t.Run("is beside the records, under their name", func(t *testing.T) {
		f := aFolder(t)
		if want := strings.TrimSuffix(f.DB(), ".db") + ".d"; f.Path() != want {
			t.Errorf("it is %s, not %s", f.Path(), want)
		}
	})
	t.Run("is in the state home by default", func(t *testing.T) {
		t.Setenv("XDG_STATE_HOME", "/elsewhere")
		f, err := NewFolder(config.Default("lab"))
		if want := "/elsewhere/drover/lab/drover.db"; err != nil || f.DB() != want {
			t.Errorf("the records are in %s, %v, not %s", f.DB(), err, want)
		}
	})
	t.Run("is the same through any link", func(t *testing.T) {
		f := aFolder(t)
		if err := os.WriteFile(f.DB(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := config.Default("lab")
		c.State = filepath.Join(t.TempDir(), "other.db")
		if err := os.Symlink(f.DB(), c.State); err != nil {
			t.Fatal(err)
		}
		if linked, err := NewFolder(c); err != nil || linked != f {
			t.Errorf("it is %+v, %v, not %+v", linked, err, f)
		}
	})
	t.Run("does not exist without a fleet", func(t *testing.T) {
		if _, err := NewFolder(config.Default("")); err == nil {
			t.Error("got a folder without a fleet")
		}
	})
	t.Run("is refused if others can enter it", func(t *testing.T) {
		f := aFolder(t)
		if err := os.Chmod(f.Path(), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := f.Make(); drover.KindOf(err) != drover.KindForbidden {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestLocalToken(t *testing.T) {
	t.Run("is created once, for its owner only", func(t *testing.T) {
		f := aFolder(t)
		made, err := f.MakeToken()
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.MakeToken()
		if err != nil || again.Reveal() != made.Reveal() || len(made.Reveal()) < 43 {
			t.Errorf("%q, then %q, %v", made.Reveal(), again.Reveal(), err)
		}
		info, err := os.Stat(f.tokenFile())
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("its mode is %v, %v", info.Mode(), err)
		}
	})
	t.Run("is refused if others can read it", func(t *testing.T) {
		f := aFolder(t)
		if _, err := f.MakeToken(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.tokenFile(), 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := f.MakeToken(); drover.KindOf(err) != drover.KindForbidden {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("is refused if its file is empty", func(t *testing.T) {
		f := aFolder(t)
		if err := os.WriteFile(f.tokenFile(), []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.MakeToken(); drover.KindOf(err) != drover.KindInvalid || drover.AsError(err, "").Hint == "" {
			t.Errorf("the error is %v", err)
		}
	})
}
