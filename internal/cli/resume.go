package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"drover"
	"drover/internal/daemon"
)

// asBegun rejects flags that differ from those the run was started with, since they would have no effect. Equal ones
// may be repeated.
func (f runFlags) asBegun(config string, p daemon.RunPlan) error {
	for _, name := range f.repeated {
		begun, same, err := f.compare(name, config, p)
		if err != nil {
			return err
		}
		if same {
			continue
		}
		if begun == "" {
			begun = "without --" + name
		} else {
			begun = fmt.Sprintf("with --%s %s", name, begun)
		}
		return drover.Errorf(drover.KindInvalid, "run %s was started %s, and must be resumed with the same flags", f.resume, begun).
			WithHint("leave out --%s: drover run --resume %s", name, f.resume)
	}
	return nil
}

// compare returns the run's original value, empty without the flag, and whether the flag has the same value now.
func (f runFlags) compare(name, config string, p daemon.RunPlan) (begun string, same bool, err error) {
	switch name {
	case "config":
		return p.Config, samePath(config, p.Config), nil
	case "out":
		return filepath.Dir(p.Out), samePath(filepath.Join(f.out, p.Batch.Name), p.Out), nil
	case "cloud":
		return p.Limits.Cloud, f.limits.Cloud == p.Limits.Cloud, nil
	case "max-cost":
		cost, err := parseCost(f.cost)
		return nonzero(p.Limits.MaxCost), cost == p.Limits.MaxCost, err
	case "max-instances":
		return nonzero(p.Limits.MaxInstances), f.limits.MaxInstances == p.Limits.MaxInstances, nil
	case "keep":
		return nonzero(p.Limits.Keep), f.limits.Keep == p.Limits.Keep, nil
	}
	return "", false, nil
}

// nonzero formats a value; empty for the zero value.
func nonzero[T comparable](v T) string {
	var zero T
	if v == zero {
		return ""
	}
	return fmt.Sprint(v)
}

// samePath reports whether two paths lead to the same place. Neither need exist.
func samePath(one, other string) bool {
	if one == "" || other == "" {
		return one == other
	}
	first, err := filepath.Abs(one)
	if err != nil {
		return false
	}
	second, err := filepath.Abs(other)
	if err != nil || first == second {
		return err == nil
	}
	a, err := os.Stat(first)
	if err != nil {
		return false
	}
	b, err := os.Stat(second)
	return err == nil && os.SameFile(a, b)
}
