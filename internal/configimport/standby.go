package configimport

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"drover"
)

// cell is an entry of kip's standby list.
type cell struct {
	InstanceType string `yaml:"instanceType"`
	Count        int    `yaml:"count"`
	Spot         bool   `yaml:"spot"`
}

// provider is the part of kip's provider.yaml that is carried over.
type provider struct {
	Cloud struct {
		AWS *struct {
			Region string `yaml:"region"`
		} `yaml:"aws"`
	} `yaml:"cloud"`
	Cells struct {
		StandbyCells []cell `yaml:"standbyCells"`
	} `yaml:"cells"`
}

// kip converts kip's provider.yaml, or the list of standby cells alone.
func (w *writer) kip(data []byte) error {
	var p provider
	var document any
	err := yaml.Unmarshal(data, &document)
	if _, list := document.([]any); err == nil && list {
		err = yaml.Unmarshal(data, &p.Cells.StandbyCells)
	} else if err == nil {
		err = yaml.Unmarshal(data, &p)
		w.notef("only the region and cells.standbyCells of kip's provider.yaml are converted")
	}
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "the file is neither a valid provider.yaml nor a valid list of standby cells: %v", err)
	}
	w.fleet = "kip"
	most := 0
	for i, c := range p.Cells.StandbyCells {
		if c.InstanceType == "" {
			return drover.Errorf(drover.KindInvalid, "standby cell %d has no instanceType", i+1)
		}
		if most += c.Count; c.Count < 0 {
			return drover.Errorf(drover.KindInvalid, "standby cell %d has an invalid count: %d", i+1, c.Count)
		}
		market := drover.OnDemand
		if c.Spot {
			market = drover.Spot
		}
		w.pools = append(w.pools, pair(fmt.Sprintf("standby-%d", i+1), yaml.MapSlice{pair("spare", c.Count), pair("type", c.InstanceType), pair("market", string(market))}))
	}
	if len(w.pools) == 0 {
		return drover.Errorf(drover.KindInvalid, "there are no standby cells")
	}
	// There is room for instances in use besides the spare ones.
	if aws := p.Cloud.AWS; aws != nil && aws.Region != "" {
		w.cloud("aws", aws.Region, most+10)
		return nil
	}
	w.standIn(most + 10)
	return nil
}

// groups converts lines of min:max:type:name, each optionally after --nodes=. It skips empty lines and those that begin
// with #.
func (w *writer) groups(text string) error {
	w.fleet = "groups"
	most, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimPrefix(strings.TrimSpace(line), "--nodes="); line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, ":", 4)
		if len(parts) != 4 {
			return drover.Errorf(drover.KindInvalid, "line %d: %.80q is not in the form min:max:type:name", number, line)
		}
		least, err := strconv.Atoi(parts[0])
		size, maxErr := strconv.Atoi(parts[1])
		if err != nil || maxErr != nil || least < 0 || size < max(1, least) || parts[2] == "" {
			return drover.Errorf(drover.KindInvalid, "line %d: %.80q must have a type and the numbers min and max; max must be at least 1 and not less than min", number, line)
		}
		name := nameOf(parts[3], fmt.Sprintf("group-%d", number))
		if name != parts[3] {
			w.notef("%s: the pool is called %s, because a name may have up to 32 letters, digits and dashes, and must begin with a letter", parts[3], name)
		}
		for _, p := range w.pools {
			if p.Key == name {
				return drover.Errorf(drover.KindInvalid, "line %d: there is already a group %s", number, name)
			}
		}
		most += size
		w.pools = append(w.pools, pair(name, yaml.MapSlice{pair("floor", least), pair("max", size), pair("type", parts[2])}))
	}
	if len(w.pools) == 0 {
		return drover.Errorf(drover.KindInvalid, "there are no groups").WithHint("write lines such as 1:10:m7i.large:workers")
	}
	w.standIn(most)
	return nil
}
