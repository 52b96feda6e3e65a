package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/cgroup"
	"drover/internal/container"
)

// sandbox is where an attempt's command runs: directly on the instance, in a control group if one can be made, or in a
// container. It is in the attempt's journal before the command begins, so that if the supervisor dies, the daemon finds
// what it left.
type sandbox struct {
	Name    string       `json:"name"`              // of the control group or container
	Groups  *cgroup.Base `json:"groups,omitempty"`  // where the control group is; nil if there is none
	UID     int          `json:"uid,omitempty"`     // the user that an isolated attempt runs as; 0: not isolated
	Runtime string       `json:"runtime,omitempty"` // what runs the container; empty if there is none
}

// removePatience bounds the removal of a container.
const removePatience = time.Minute

// clear ends what is left of the attempt in its control group and container, and removes them.
func (p sandbox) clear() error {
	var wrong []error
	if p.Groups != nil {
		wrong = append(wrong, p.Groups.Group(p.Name).Remove(clearPatience))
	}
	if p.Runtime != "" {
		wrong = append(wrong, p.removeContainer())
	}
	return errors.Join(wrong...)
}

func (p sandbox) removeContainer() error {
	r, err := container.Open(p.Runtime)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), removePatience, fmt.Errorf("%s did not answer within %v", p.Runtime, removePatience))
	defer cancel()
	if err := r.Remove(ctx, p.Name); err != nil {
		return fmt.Errorf("removing container %s: %w", p.Name, err)
	}
	return nil
}

// sandboxName names an attempt's container and control group. One host may have instances of several fleets, and two of
// the same name once a fleet's records were lost, so the name includes a hash of the folder.
func (d *daemon) sandboxName(id drover.AttemptID) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, d.identity.Fleet+"-"+d.identity.Instance+"-"+id.Folder())
	sum := sha256.Sum256([]byte(d.folder))
	return placePrefix + name + "-" + hex.EncodeToString(sum[:4])
}

const placePrefix = "drover-"
