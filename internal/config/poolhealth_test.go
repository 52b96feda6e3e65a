package config

import (
	"strings"
	"testing"
	"time"
)

// covers P1
func TestHealth(t *testing.T) {
	for _, test := range []struct {
		health string
		port   int
		path   string
		fault  string
	}{
		{health: "{tcp: 5432}", port: 5432},
		{health: "{http: ':80/'}", port: 80, path: "/"},
		{health: "{http: ':8080/a/b?c=d', interval: 2s}", port: 8080, path: "/a/b?c=d"},
		{health: "{}", fault: "either tcp or http"},
		{health: "{tcp: 1, http: ':80/'}", fault: "either tcp or http"},
		{health: "{http: '/healthz'}", fault: "not in the form :PORT/PATH"},
		{health: "{http: ':0/'}", fault: "not in the form :PORT/PATH"},
		{health: "{http: ':80/a b'}", fault: "not in the form :PORT/PATH"},
		{health: "{http: 'host:80/'}", fault: "not in the form :PORT/PATH"},
		{health: "{tcp: 70000}", fault: "too large"},
		{health: "{tcp: 1, interval: 100ms}", fault: "at least 1s"},
		{health: "{tcp: 1, timeout: 20s}", fault: "must not exceed interval"},
	} {
		t.Run(test.health, func(t *testing.T) {
			c, err := Parse("t", []byte("version: 1\nclouds: {here: {driver: local}}\npools: {web: {size: 1, health: "+test.health+"}}\n"), "")
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("%v, want %q", err, test.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h := c.Pools[0].Health
			if port, path := h.Target(); port != test.port || path != test.path || h.Failures != 3 || h.Timeout != min(5*time.Second, h.Interval) {
				t.Errorf("%d %q, %+v", port, path, h)
			}
		})
	}
}
