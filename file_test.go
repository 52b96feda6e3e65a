package drover_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func TestAFileKeepsItsPathInJSON(t *testing.T) {
	for _, path := range []string{"a/b.txt", "a\nb", "caf\xe9/\xff"} {
		want := []drover.File{{Path: path, Mode: 0o644, Size: 3, Hash: "ab"}}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got []drover.File
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
