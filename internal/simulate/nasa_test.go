package simulate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/trace"
)

// BenchmarkNASA simulates a log of the Parallel Workloads Archive on EC2's types. DATA names the folder of both.
func BenchmarkNASA(b *testing.B) {
	in := nasa(b)
	for _, p := range Policies {
		b.Run(string(p), func(b *testing.B) {
			for b.Loop() {
				r, err := Run(b.Context(), in, p)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.Cost, "usd")
				b.ReportMetric(r.Wait.Mean, "wait-s")
			}
		})
	}
}

// nasa returns the log on one cloud without limits, the command's default.
func nasa(tb testing.TB) Input {
	data := os.Getenv("DATA")
	if data == "" {
		tb.Skip("DATA does not name the folder of the log and the price list")
	}
	log, err := trace.Open(filepath.Join(data, "NASA-iPSC-1993-3.1-cln.swf.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	settings := engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "cloud", MaxCreating: 100, ListInterval: time.Minute, Billing: drover.Billing{Least: LeastBilled}}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
		},
	}
	m := DefaultModels
	return Input{
		Trace: log, Models: m, Offerings: m.Offerings("cloud", []string{"a"}, ec2(tb)), MemoryPerCPU: 2 * drover.GiB, Settings: settings,
		Spot: drover.SpotPolicy(os.Getenv("SPOT")),
	}
}

// ec2 returns EC2's price list from the same folder.
func ec2(tb testing.TB) []trace.Price {
	list, err := trace.OpenPrices(filepath.Join(os.Getenv("DATA"), "ec2-us-east-1.csv"))
	if err != nil {
		tb.Fatal(err)
	}
	return list
}
