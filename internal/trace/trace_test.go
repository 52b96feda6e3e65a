package trace

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

const someSWF = `; Version: 2.2
; UnixStartTime: 749458803
;
    2     1460     -1   3726  128     -1    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1
    1        0     -1   1451.5  -1    -1    64    4     -1    -1  1   7   1  -1 -1 -1 -1 -1
    3     5198     -1   1067    2     -1    -1   -1   3600  1024  1  -1   1  -1 -1 -1 -1 -1
    4     6000     -1     -1    2     -1    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1
    5     6000     -1      0   -1     -1    -1   -1     -1    -1  5   1   1  -1 -1 -1 -1 -1
    6     6000     -1     10   -1     -1    -1    0     -1    -1  1   1   1  -1 -1 -1 -1 -1
    7     6000     -1     10    4     -1    -1   -1     -1    -1  3   1   1  -1 -1 -1 -1 -1
    8     6000     -1     10    4     -1    -1   -1     -1    -1  2   1   1  -1 -1 -1 -1 -1
`

func TestAPartOfAProcessorCountsAsOne(t *testing.T) {
	got, err := Read("log.swf", strings.NewReader("1 0 -1 9 0.5 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n2 0 -1 9 0 -1 -1 1.5 -1 1024 1 1 1 -1 -1 -1 -1 -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []drover.Resources{{CPU: 1000}, {CPU: 2000, Memory: 2 * drover.MiB}} {
		if got.Jobs[i].Need != want {
			t.Errorf("job %d needs %+v, not %+v", i+1, got.Jobs[i].Need, want)
		}
	}
}

func TestSWF(t *testing.T) {
	got, err := Read("log.swf", strings.NewReader(someSWF))
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{Name: "log.swf", Start: 749458803e9, Jobs: []Job{
		{Runtime: 1451500 * time.Millisecond, Need: drover.Resources{CPU: 4000, Memory: 256 * drover.KiB}, Count: 1, User: "user7"},
		{Submit: 1460 * time.Second, Runtime: 3726 * time.Second, Need: drover.Resources{CPU: 128_000}, Count: 1, User: "user1"},
		{Submit: 5198 * time.Second, Runtime: 1067 * time.Second, Expected: time.Hour, Need: drover.Resources{CPU: 2000, Memory: 2 * drover.MiB}, Count: 1},
	}, Left: []Left{
		{"listed as part of another job", 2}, {"cancelled before starting", 1}, {"without a number of processors", 1}, {"without a run time", 1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const someCSV = `# what a queue was given on a Monday
submit,runtime,vcpus,memory,count,user,spot,priority,gpus,arch,disk,expected
90,1h30m,2,4Gi,3,ada,never,5,1,arm64,10Gi,2h
0.5,600,0.5,,,,,,,,,
`

func TestCSV(t *testing.T) {
	t.Run("its first line names its columns", func(t *testing.T) {
		got, err := Read("jobs.csv", strings.NewReader(someCSV))
		if err != nil {
			t.Fatal(err)
		}
		want := &Trace{Name: "jobs.csv", Jobs: []Job{
			{Submit: 500 * time.Millisecond, Runtime: 10 * time.Minute, Need: drover.Resources{CPU: 500}, Count: 1},
			{
				Submit: 90 * time.Second, Runtime: 90 * time.Minute, Expected: 2 * time.Hour, Count: 3, User: "ada", Spot: drover.SpotNever, Priority: 5,
				Need: drover.Resources{CPU: 2000, Memory: 4 * drover.GiB, Disk: 10 * drover.GiB, GPUs: 1, Arch: "arm64"},
			},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("starts with its earliest job if its jobs have dates, in any order", func(t *testing.T) {
		got, err := Read("jobs.csv", strings.NewReader("vcpus,submit,runtime\n1,2026-03-01T13:00:30Z,5\n1,2026-03-01T14:00:00+01:00,5\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Start != drover.TimeOf(time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)) || got.Jobs[1].Submit != 30*time.Second {
			t.Errorf("%v: %+v", got.Start, got.Jobs)
		}
	})
	t.Run("may start in 1970", func(t *testing.T) {
		got, err := Read("jobs.csv", strings.NewReader("vcpus,submit,runtime\n1,1970-01-01T00:00:00Z,5\n1,1970-01-01T00:01:00Z,5\n"))
		if err != nil || got.Jobs[1].Submit != time.Minute {
			t.Errorf("%v: %+v", err, got)
		}
	})
	t.Run("can be compressed", func(t *testing.T) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write([]byte(someCSV))
		w.Close()
		if got, err := Read("jobs.CSV.gz", &packed); err != nil || len(got.Jobs) != 2 {
			t.Errorf("%v: %+v", err, got)
		}
	})
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	for file, text := range map[string]string{"a.swf": someSWF, "a.csv": someCSV, "quoted.csv": "\"submit\",runtime,vcpus\n0,1,1\n"} {
		if _, err := Read(file, strings.NewReader("\ufeff"+text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := ReadPrices("prices.csv", strings.NewReader("\ufeff# prices\n"+somePrices)); err != nil {
		t.Error(err)
	}
}

func TestAFileThatIsCutShort(t *testing.T) {
	for _, file := range []string{"a.swf.gz", "a.csv.gz"} {
		text := someSWF[strings.LastIndex(someSWF, ";")+2:]
		if file == "a.csv.gz" {
			text = strings.TrimPrefix(someCSV, "# what a queue was given on a Monday\n")
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		w.Write([]byte(text[:len(text)-10]))
		w.Flush()
		if _, err := Read(file, &packed); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
			t.Errorf("%s: the error is %v", file, err)
		}
	}
}

func TestFaults(t *testing.T) {
	swf := func(line string) string { return "; a comment\n" + line + "\n" }
	for name, c := range map[string]struct{ file, text, want string }{
		"a field that is text":         {"a.swf", swf("1 0 -1 x 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"), `a.swf:2:8: field 4 is not a number: "x"`},
		"a field that is NaN":          {"a.swf", swf("1 0 -1 NaN 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"), `a.swf:2:8: field 4`},
		"too few fields":               {"a.swf", swf("1 0 -1"), "a.swf:2:1: there are 3 fields instead of 18"},
		"too many fields":              {"a.swf", swf(strings.Repeat("1 ", 19)), "a.swf:2:37: there are more than 18 fields"},
		"a line that is too long":      {"a.swf", swf(strings.Repeat("1", maxLine+1)), "a.swf:2:1: the line is longer than 65536 bytes"},
		"too many processors":          {"a.swf", swf("1 0 -1 5 1e9 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"), "a.swf:2:10: 1000000000 processors exceed the limit of 1000000"},
		"a run that is too long":       {"a.swf", swf("1 0 -1 1e300 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"), "a.swf:2:8: field 4 is more than 10 years"},
		"no jobs":                      {"a.swf", swf("1 0 -1 -1 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1"), "a.swf has no job that can be simulated: 1 without a run time"},
		"another format":               {"a.txt", "", "a.txt is neither a .swf nor a .csv file"},
		"not compressed":               {"a.csv.gz", "submit", "a.csv.gz is not compressed with gzip"},
		"an empty table":               {"a.csv", "", "a.csv is empty"},
		"a missing column":             {"a.csv", "submit,runtime\n", "a.csv:1:1: there is no column vcpus"},
		"an unknown column":            {"a.csv", "submit,runtime,vcpus,cpu\n", `a.csv:1:22: unknown column "cpu"`},
		"a duplicate column":           {"a.csv", "submit,runtime,vcpus,vcpus\n", `a.csv:1:22: column vcpus is given twice`},
		"too few columns in a line":    {"a.csv", "submit,runtime,vcpus\n1,2\n", "a.csv:2:1: wrong number of fields"},
		"an invalid time":              {"a.csv", "submit,runtime,vcpus\n1,soon,1\n", `a.csv:2:3: runtime: "soon" is neither a number of seconds`},
		"a time that is too long":      {"a.csv", "submit,runtime,vcpus\n1,90000h,1\n", `a.csv:2:3: runtime: "90000h" is more than 10 years`},
		"a negative time":              {"a.csv", "submit,runtime,vcpus\n1,-1,1\n", `a.csv:2:3: runtime: "-1" is negative`},
		"a size without its unit":      {"a.csv", "submit,runtime,vcpus,memory\n1,1,1,4096\n", `a.csv:2:7: memory: "4096" is less than 1Mi (write, for example, 512Mi or 16Gi)`},
		"a part of a unit":             {"a.csv", "submit,runtime,vcpus,memory\n1,1,1,0.5\n", `a.csv:2:7: memory: "0.5" is less than 1Mi (write, for example, 512Mi or 16Gi)`},
		"times with and without dates": {"a.csv", "submit,runtime,vcpus\n2026-03-01T14:00:00Z,1,1\n5,1,1\n", "a.csv:3:1: submit: dates must be given for all jobs or for none"},
		"no vCPUs":                     {"a.csv", "submit,runtime,vcpus\n1,2,0\n", "a.csv:2:5: vcpus: it is not between"},
		"an invalid spot policy":       {"a.csv", "submit,runtime,vcpus,spot\n1,2,1,maybe\n", `a.csv:2:7: spot: "maybe" is not one of prefer, require, never`},
		"too many jobs":                {"a.csv", "submit,runtime,vcpus,count\n" + strings.Repeat("1,2,1,1000000\n", 6), "a.csv:7:1: there are more than 5000000 jobs"},
		"an unterminated quote":        {"a.csv", "submit,runtime,vcpus\n\"" + strings.Repeat("x\n", 3*maxLine), "a record is longer than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.file, strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
}

const somePrices = "type,vcpus,memory_mib,gpus,arch,usd_per_hour\na1.large,2,4096,0,arm64,0.051\np3.2xlarge,8,62464,1,amd64,3.06\n"

func TestPrices(t *testing.T) {
	got, err := ReadPrices("prices.csv", strings.NewReader(somePrices))
	if err != nil {
		t.Fatal(err)
	}
	want := drover.InstanceType{Name: "p3.2xlarge", ProviderType: "p3.2xlarge", Resources: drover.Resources{CPU: 8000, Memory: 61 * drover.GiB, GPUs: 1, Arch: "amd64"}}
	if len(got) != 2 || got[1].Type != want || got[1].OnDemand != 3060*drover.Dollar/1000 || got[1].Spot != 0 {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{
		"type,vcpus,memory_mib\na,1,1\n":                                    "prices.csv:1:1: there is no column usd_per_hour",
		"type,vcpus,memory_mib,usd_per_hour\na,1,1,x\n":                     `prices.csv:2:7: usd_per_hour: "x" is not an amount`,
		"type,vcpus,memory_mib,usd_per_hour\na,1,1,1\na,2,1,1\n":            `prices.csv:3:1: type "a" is given twice`,
		"type,vcpus,memory_mib,usd_per_hour\na,1,1,0\n":                     "prices.csv:2:7: usd_per_hour: the price per hour must be more than 0 and at most $10000",
		"type,vcpus,memory_mib,usd_per_hour\na,1,1,10001\n":                 "prices.csv:2:7: usd_per_hour: the price per hour must be more than 0",
		"type,vcpus,memory_mib,usd_per_hour\n,1,1,1\n":                      "prices.csv:2:1: a type needs a name and vCPUs",
		"type,vcpus,memory_mib,usd_per_hour,spot_usd_per_hour\na,1,1,1,0\n": "prices.csv:2:9: spot_usd_per_hour: the price per hour must be more than 0",
		"type,vcpus,memory_mib,usd_per_hour\n":                              "prices.csv lists no types",
		"type,vcpus,memory_mib,arch,usd_per_hour\na,1,1,mips,1\n":           `prices.csv:2:7: arch: "mips" is not one of amd64, arm64`,
	} {
		if _, err := ReadPrices("prices.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// sound checks that a trace has the properties that Read promises.
func sound(t *testing.T, name string, text []byte) {
	got, err := Read(name, bytes.NewReader(text))
	if err != nil {
		if drover.AsError(err, drover.KindInternal).Kind != drover.KindInvalid {
			t.Errorf("%v is not of kind invalid", err)
		}
		return
	}
	last := time.Duration(0)
	for _, j := range got.Jobs {
		if j.Submit < last || j.Runtime < 0 || j.Runtime > longest || j.Need.CPU <= 0 || j.Need.Memory < 0 || j.Count < 1 {
			t.Errorf("%+v", j)
		}
		last = j.Submit
	}
}

func FuzzSWF(f *testing.F) {
	f.Add([]byte(someSWF))
	f.Fuzz(func(t *testing.T, text []byte) { sound(t, "a.swf", text) })
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(someCSV))
	f.Add([]byte("submit,runtime,vcpus\n2026-03-01T14:00:00Z,1,1\n"))
	f.Fuzz(func(t *testing.T, text []byte) { sound(t, "a.csv", text) })
}

func FuzzPrices(f *testing.F) {
	f.Add([]byte(somePrices))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ReadPrices("a.csv", bytes.NewReader(text))
		if err != nil && drover.AsError(err, drover.KindInternal).Kind != drover.KindInvalid {
			t.Errorf("%v is not of kind invalid", err)
		}
		for _, p := range list {
			if p.OnDemand <= 0 || p.Spot < 0 || p.Type.Resources.CPU <= 0 || p.Type.Resources.Memory <= 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}
