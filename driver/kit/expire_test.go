package kit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRememberedForgetsWithoutQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Remembered
		r.Add("a")
		time.Sleep(rememberFor)
		r.Add("b")
		if len(r.all) != 1 {
			t.Errorf("%d ids are remembered", len(r.all))
		}
	})
}
