package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// gallery is a cloud that finds images, and records its create requests.
type gallery struct {
	driver.Cloud
	images []driver.Image
	err    error
	asked  int
	got    driver.CreateRequest
}

func (g *gallery) Capabilities() driver.Capabilities {
	return driver.Capabilities{Template: true, Init: driver.InitCloud, MaxInit: 16 << 10, Project: "acme"}
}

func (g *gallery) Create(_ context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	g.got = r
	return driver.Instance{}, r.Candidates[0], nil
}

func (g *gallery) FindImages(_ context.Context, ref string, _ drover.Arch) (found []driver.Image, err error) {
	g.asked++
	for _, i := range g.images {
		if i.Name == ref || i.ID == ref {
			found = append(found, i)
		}
	}
	return found, g.err
}

func candidate(arch drover.Arch) driver.Candidate {
	return driver.Candidate{ProviderType: "t", Arch: arch}
}

// covers K9
func TestWithImages(t *testing.T) {
	images := []driver.Image{
		{ID: "i1", Name: "debian", Arch: "amd64", Created: 1}, {ID: "i3", Name: "debian", Arch: "arm64", Created: 9}, {ID: "i2", Name: "debian", Arch: "amd64", Created: 2},
	}
	create := func(t *testing.T, c driver.Cloud, archs ...drover.Arch) error {
		t.Helper()
		r := driver.CreateRequest{Name: "x"}
		for _, a := range archs {
			r.Candidates = append(r.Candidates, candidate(a))
		}
		_, _, err := c.Create(t.Context(), r)
		return err
	}
	t.Run("a request's images replace the cloud's, and without either the driver chooses", func(t *testing.T) {
		g := &gallery{images: append(images, driver.Image{ID: "i9", Name: "web"})}
		own := driver.CreateRequest{Name: "x", Candidates: []driver.Candidate{candidate("amd64")}, Images: map[drover.Arch]string{"": "web"}}
		for _, refs := range []map[drover.Arch]string{nil, {"": "debian"}} {
			if _, _, err := middleware.WithImages(g, refs).Create(t.Context(), own); err != nil || g.got.Candidates[0].Image != "i9" {
				t.Errorf("with %v: %v, %+v", refs, err, g.got.Candidates)
			}
		}
		if err := create(t, middleware.WithImages(g, nil), "amd64"); err != nil || g.got.Candidates[0].Image != "" {
			t.Errorf("without images: %v, %+v", err, g.got.Candidates)
		}
	})
	t.Run("each candidate gets the newest image for its architecture", func(t *testing.T) {
		g := &gallery{images: images}
		if err := create(t, middleware.WithImages(g, map[drover.Arch]string{"": "debian"}), "arm64", "amd64"); err != nil {
			t.Fatal(err)
		}
		if got := g.got.Candidates; got[0].Image != "i3" || got[1].Image != "i2" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("an architecture may have its own image, and a candidate without one is left out", func(t *testing.T) {
		g := &gallery{images: images}
		c := middleware.WithImages(g, map[drover.Arch]string{"arm64": "i3", "amd64": "missing"})
		if err := create(t, c, "amd64", "arm64"); err != nil {
			t.Fatal(err)
		}
		if got := g.got.Candidates; len(got) != 1 || got[0].Image != "i3" {
			t.Errorf("got %+v", got)
		}
		if err := create(t, c, "amd64"); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a cloud that is no ImageFinder gets the reference unchanged", func(t *testing.T) {
		g := &gallery{}
		if err := create(t, middleware.WithImages(struct{ driver.Cloud }{g}, map[drover.Arch]string{"": "anything"}), "amd64"); err != nil {
			t.Fatal(err)
		}
		if got := g.got.Candidates[0].Image; got != "anything" || g.asked != 0 {
			t.Errorf("got %q after %d searches", got, g.asked)
		}
	})
	t.Run("a result is used for ten minutes, or longer while the cloud cannot be queried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := &gallery{images: images}
			c := middleware.WithImages(g, map[drover.Arch]string{"": "debian"})
			for _, want := range []int{1, 1, 2} {
				if err := create(t, c, "amd64"); err != nil || g.asked != want {
					t.Errorf("%d searches, want %d; %v", g.asked, want, err)
				}
				time.Sleep(6 * time.Minute)
			}
			g.err = errors.New("no answer")
			time.Sleep(time.Hour)
			if err := create(t, c, "amd64"); err != nil || g.got.Candidates[0].Image != "i2" {
				t.Errorf("got %v, %+v", err, g.got.Candidates)
			}
			if err := create(t, c, "arm64"); !errors.Is(err, g.err) {
				t.Errorf("an image that was never found: %v", err)
			}
		})
	})
}
