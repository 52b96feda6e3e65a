package drover_test

import (
	"strings"
	"testing"

	"drover"
)

func TestCheckImage(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0af", 21) + "0"
	for _, name := range []string{
		"busybox", "busybox:1.36", "docker.io/library/busybox:1.36", "me/tool_x", "a/b/c-d__e.f:V1.0_x", "localhost:5000/x", "127.0.0.1:5071/bb:1",
		"Registry.Example:443/x", "x" + digest, "ghcr.io/me/x:1" + digest, strings.Repeat("a", 200),
	} {
		t.Run("accepts "+name, func(t *testing.T) {
			if err := drover.CheckImage(name); err != nil {
				t.Error(err)
			}
		})
	}
	for _, name := range []string{
		"", "-v", "--privileged", "Busybox", "a b", "a\nb", "x:", ":1", "x@", "x@sha256:00", "x@md5:0", "/x", "x/", "a//b", "../x", "a/../b", "x:1:2",
		"https://docker.io/x", "x;y", "$x", "x\x00", strings.Repeat("a", 600), "x:" + strings.Repeat("1", 129), "é",
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if drover.CheckImage(name) == nil {
				t.Error("it was accepted")
			}
		})
	}
}
