package cli

import (
	"strings"
	"testing"

	"drover/internal/config"
	"drover/internal/web"
)

func TestWhatIfRejectsUnknownDriversAndKeys(t *testing.T) {
	a := &app{program: underTest()}
	s := a.newSimulator(func() *config.Config { return config.Default("lab") }, nil)
	for cloud, want := range map[string]string{
		"{driver: lcoal}":                         "there is no driver lcoal",
		"{driver: local, faluts: {lifetime: 1h}}": `unknown key "faluts"`,
	} {
		_, err := s.WhatIf(t.Context(), nil, web.WhatIf{Configuration: "version: 1\nfleet: lab\nclouds: {here: " + cloud + "}\n", TraceName: "jobs.csv", Trace: strings.NewReader("")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", cloud, err, want)
		}
	}
}
