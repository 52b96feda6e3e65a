package drover

import "testing"

func TestPart(t *testing.T) {
	for _, c := range []struct{ base, percent, n, want int }{
		{0, 0, 10, 0}, {2, 0, 10, 2}, {2, 0, 1, 1}, {2, 20, 2, 2}, {2, 20, 3, 3}, {2, 20, 12, 4}, {0, 100, 7, 7}, {0, 25, 1, 1}, {3, 50, 0, 0},
	} {
		if got := (Part{c.base, c.percent}).Of(c.n); got != c.want {
			t.Errorf("the first %d and %d%% of the rest of %d are %d, want %d", c.base, c.percent, c.n, got, c.want)
		}
	}
}
