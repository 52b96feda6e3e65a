package cli

import (
	"os"
	"slices"
	"testing"

	"drover"
)

func TestPoolsCommands(t *testing.T) {
	pools := func() []drover.Pool {
		return []drover.Pool{
			{Stopped: 1, Keeps: 1, Name: "reserve", Kind: drover.PoolSpare, Wanted: 2, Instances: 2, Ready: 2},
			{Name: "web", Kind: drover.PoolSize, Wanted: 3, Instances: 2, Ready: 1, ByZone: map[string]int{"here/b": 1, "here/a": 1}, Leaving: 1,
				Reason: &drover.Reason{Code: "limit", Text: "max_instances of cloud here is reached"}},
		}
	}
	t.Run("list each pool's size and instances, and the reason for a shortfall", func(t *testing.T) {
		f := &fakeController{pools: pools()}
		f.serve(t)
		droverCommand(t, "pools").want(t, 0, "NAME     KIND   WANTED  INSTANCES  READY  STOPPED  REASON\nreserve  spare       2          2      2      1/1\n"+
			"web      size        3          2      1        -  max_instances of cloud here is reached\n", "")
		droverCommand(t, "pools", "web", "-o", "wide").want(t, 0, "here/a=1,here/b=1        1         0", "")
		droverCommand(t, "pools", "-o", "name").want(t, 0, "reserve\nweb\n", "")
		droverCommand(t, "pools", "web", "-o", "yaml").want(t, 0, "name: web\nkind: size\nwanted: 3\n", "")
		droverCommand(t, "pools", "nobody").want(t, 2, "", "there is no pool nobody")
		droverCommand(t, "__complete", "pools", "").want(t, 0, "web\tsize 3, has 2\n", "")
		droverCommand(t, "__complete", "explain", "pool/").want(t, 0, "pool/web\t", "")
	})
	t.Run("set a pool's size, with a reason", func(t *testing.T) {
		f := &fakeController{pools: pools()}
		f.serve(t)
		droverCommand(t, "pool", "set", "web", "--size", "5", "--reason", "a launch").want(t, 0, "pool web: size 5; it has 2 instances now\n", "")
		droverCommand(t, "pool", "set", "web", "--size", "0", "-o", "json").want(t, 0, `"wanted":0`, "")
		if want := []string{"resize web 5 a launch", "resize web 0 "}; !slices.Equal(f.told, want) {
			t.Errorf("the controller got %q, not %q", f.told, want)
		}
		droverCommand(t, "pool", "set", "nobody", "--size", "5").want(t, 2, "", "there is no pool")
		droverCommand(t, "pool", "set", "web").want(t, 2, "", "size")
		droverCommand(t, "pool", "set", "web", "--size", "-1").want(t, 2, "", "--size is -1, but must not be negative")
	})
}

func TestARunRejectsPools(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("drover.yaml", []byte("version: 1\nclouds: {here: {driver: local}}\npools: {web: {size: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	droverCommand(t, "run", "-c", "drover.yaml", "--", "true").want(t, 2, "", "drover.yaml:3:8: drover run does not maintain pools")
	droverCommand(t, "plan", "-c", "drover.yaml", "--", "true").want(t, 0, "", "")
}
