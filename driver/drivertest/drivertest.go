// Package drivertest is the conformance suite for drivers: the contract of package driver as checks that can fail.
//
// A driver's own test calls Run with a Harness. The same checks run outside of "go test", against a real account, by
// ranging over Checks. Every check opens the cloud for itself, creates what it needs with the cheapest offering, and
// destroys everything it created, even if it fails. Clouds are eventually consistent: anything that a check waits for
// may take Harness.Patience.
package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// Harness is the cloud under test.
type Harness struct {
	// Open opens the cloud for a fleet, each time as a separate controller would.
	Open func(ctx context.Context, fleet string) (driver.Cloud, error)

	// Images are the images that the cloud's instances boot from, by name; nil: Request has the image.
	Images map[drover.Arch]string

	// Fleet is the fleet of the suite's instances; a second fleet has "-other" appended. Nothing else may use the two.
	Fleet string

	// Request holds what the suite cannot know: the image, the disk, the template, and the candidates if not any will
	// do.
	Request driver.CreateRequest

	// Patience is how long an instance may take to be listed, to accept logins and to be gone.
	Patience time.Duration

	// Reach returns where to log in to an instance, as HOST:PORT, and as which user; nil: the address that the cloud
	// reports, and port 22.
	Reach func(driver.Instance) (address, user string)

	// Many is how many instances are created to test whether a list is complete; 0 skips that test. It should exceed
	// one page of the cloud's list.
	Many int

	// NoLogin skips the checks that log in, for a fake of a cloud that boots nothing.
	NoLogin bool

	// NoCommands skips the check that runs scripts and commands, for a fake whose instances accept logins but run
	// nothing.
	NoCommands bool
}

// open opens the cloud with its images.
func (h Harness) open(ctx context.Context, fleet string) (driver.Cloud, error) {
	c, err := h.Open(ctx, fleet)
	if err != nil || h.Images == nil {
		return c, err
	}
	return middleware.WithImages(c, h.Images), nil
}

// Check is one thing that a driver must do.
type Check struct {
	Name      string // a sentence
	instances int    // how many it creates, if the cloud is correct
	run       func(context.Context, *trial) error
}

// many stands for Harness.Many instances.
const many = -1

// Instances is the most instances that the check creates in a correct cloud.
func (c Check) Instances(h Harness) int {
	if c.instances == many {
		return h.Many
	}
	return c.instances
}

// Node reports an error if Drover's name for an instance's node is not the wanted one, or if the instance would derive
// another name at its first boot.
func Node(t testing.TB, c driver.Cloud, in driver.Instance, want string) {
	t.Helper()
	can := c.Capabilities()
	if got := can.NodeIDOf(in); got != want {
		t.Errorf("the node is called %q, want %q", got, want)
	}
	knows := map[string]string{
		"cloud-init": "echo " + in.ID,
		"curl": `case $* in
*metadata.google.internal*instance/zone) echo projects/4711/zones/` + in.Zone + ` ;;
*metadata.google.internal*instance/name | *169.254.169.254*compute/name*) echo ` + path.Base(in.ID) + ` ;;
*) exit 22 ;;
esac`,
	}
	if can.InitID != "" {
		knows["cloud-init"] = "echo something else"
	}
	folder := t.TempDir()
	for name, script := range knows {
		Must(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	cmd := exec.Command("sh", "-c", "echo "+can.NodeIDAtInit(in.Zone, in.Tags[driver.TagName]))
	cmd.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
	if got, err := cmd.Output(); err != nil || string(got) != want+"\n" {
		t.Errorf("on its first boot the node is called %q (%v), want %q", got, err, want)
	}
}

// ErrSkipped is returned, wrapped with the reason, by a check that does not apply to the cloud under test.
var ErrSkipped = errors.New("skipped")

// Checks lists the suite, from the most basic checks to those that depend on everything else.
func Checks() []Check {
	return []Check{
		{"capabilities are complete and correct", 0, checkCapabilities},
		{"offerings are complete, priced, sorted and distinct", 0, checkOfferings},
		{"past prices are listed newest first, and each change only once", 0, checkPrices},
		{"looking up a nonexistent image finds nothing and is not an error", 0, checkNoImage},
		{"create returns an id, the tags and the chosen candidate", 1, checkCreate},
		{"an instance has its tags as soon as it is listed", 1, checkFirstSight},
		{"repeating a create request makes no second instance", 1, checkCreateAgain},
		{"concurrent create requests with one name make one instance", 1, checkCreateRace},
		{"a request for an impossible type is rejected and creates nothing", 0, checkImpossible},
		{"a request without candidates is invalid", 0, checkNoCandidates},
		{"a list filtered by tags contains every instance that has them", 2, checkListByTags},
		{"setting tags replaces all of them", 1, checkSetTags},
		{"an instance that is gone cannot be tagged", 1, checkTagGone},
		{"destroy removes an instance, and succeeds when repeated", 1, checkDestroy},
		{"the description of an instance by its id agrees with the list", 1, checkDescribe},
		{"looking up an instance that is gone or never existed finds nothing", 1, checkDescribeGone},
		{"a fleet leaves the instances of other fleets alone", 2, checkOtherFleet},
		{"closing a cloud keeps its instances, and another controller finds them under the same ids", 1, checkReopen},
		{"concurrent calls do not disturb one another", crowd, checkConcurrency},
		{"a list of many instances is complete", many, checkMany},
		{"a stopped instance is kept and can be started again", 1, checkStopStart},
		{"growing a volume works, even when repeated, but fails if the instance is gone", 1, checkGrowDisk},
		{"shared resources belong to the fleet, are reused by its next controller, and are removed with the fleet", 2, checkShared},
		{"no call outlives its context", 2, checkContext},
		{"the installed key logs in, and the host key is the expected one", 1, checkLogin},
		{"the init scripts run at the first boot, and a command returns its output and exit code", 1, checkInit},
		{"any other key is rejected", 1, checkStranger},
		{"a wrong host key is detected", 1, checkHostKey},
	}
}

// Run makes one trial of the check.
func (c Check) Run(ctx context.Context, h Harness) (err error) {
	t, err := h.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		end := t.end(context.WithoutCancel(ctx))
		if end != nil && errors.Is(err, ErrSkipped) {
			err = nil // a check that cannot clean up has failed
		}
		err = errors.Join(err, end)
	}()
	return c.run(ctx, t)
}

// Run runs the suite as subtests.
func Run(t *testing.T, h Harness) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			err := c.Run(t.Context(), h)
			if errors.Is(err, ErrSkipped) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func skip(why string) error { return fmt.Errorf("%w: %s", ErrSkipped, why) }
