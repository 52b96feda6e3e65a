package trace

import (
	"fmt"
	"io"
	"os"

	"drover"
)

// priced are the columns of a price list. All except arch and spot_usd_per_hour are required.
var priced = []string{"type", "vcpus", "memory_mib", "gpus", "arch", "usd_per_hour", "spot_usd_per_hour"}

// Price is a type in a price list, with its hourly price.
type Price struct {
	Type     drover.InstanceType
	OnDemand drover.Money
	Spot     drover.Money // 0: empty in the list
}

// maxTypes is the maximum number of types in a price list.
const maxTypes = 20_000

// OpenPrices reads the price list from a file.
func OpenPrices(path string) ([]Price, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "opening %s: %v", path, cause(err)).WithHint("the path is relative to the current folder")
	}
	defer file.Close()
	return ReadPrices(path, file)
}

// ReadPrices reads a price list from r; name is its file's name.
func ReadPrices(name string, r io.Reader) ([]Price, error) {
	t, err := newTable(name, withoutMark(&bounded{r: r, left: maxText}))
	if err != nil {
		return nil, err
	}
	if err := t.only(priced); err != nil {
		return nil, err
	}
	for _, column := range []string{"type", "vcpus", "memory_mib", "usd_per_hour"} {
		if _, at := t.cell(t.head, column); at < 0 {
			return nil, t.fault(0, "there is no column %s", column).WithHint("a price list has the columns type, vcpus, memory_mib, gpus, arch and usd_per_hour")
		}
	}
	var list []Price
	seen := map[string]bool{}
	for {
		row, err := t.next()
		switch {
		case err == io.EOF && len(list) == 0:
			return nil, drover.Errorf(drover.KindInvalid, "%s lists no types", name)
		case err == io.EOF:
			return list, nil
		case err != nil:
			return nil, err
		}
		p, err := t.price(row)
		switch {
		case err != nil:
			return nil, err
		case seen[p.Type.Name]:
			return nil, t.fault(0, "type %.40q is given twice", p.Type.Name)
		case len(list) == maxTypes:
			return nil, t.fault(0, "there are more than %d types", maxTypes)
		}
		seen[p.Type.Name] = true
		list = append(list, p)
	}
}

// price parses one type.
func (t *table) price(row []string) (p Price, err error) {
	has := &p.Type.Resources
	for _, column := range priced {
		text, at := t.cell(row, column)
		if at < 0 || text == "" && (column == "arch" || column == "gpus" || column == "spot_usd_per_hour") {
			continue
		}
		switch column {
		case "type":
			p.Type.Name = text
			p.Type.ProviderType = text
		case "vcpus":
			has.CPU, err = drover.ParseMilliCPU(text)
		case "memory_mib":
			var mib int
			mib, err = whole(text, 1, 1<<30)
			has.Memory = drover.Bytes(mib) * drover.MiB
		case "gpus":
			has.GPUs, err = whole(text, 0, 1000)
		case "arch":
			has.Arch, err = drover.Arch(text), oneOf(text, "amd64", "arm64")
		case "usd_per_hour":
			p.OnDemand, err = rate(text)
		case "spot_usd_per_hour":
			p.Spot, err = rate(text)
		}
		if err != nil {
			return p, t.fault(at, "%s: %v", column, err)
		}
	}
	if p.Type.Name == "" || has.CPU <= 0 {
		return p, t.fault(0, "a type needs a name and vCPUs")
	}
	return p, nil
}

// rate parses an hourly price.
func rate(text string) (drover.Money, error) {
	p, err := drover.ParseMoney(text)
	if err == nil && (p <= 0 || p > maxPrice) {
		err = fmt.Errorf("the price per hour must be more than 0 and at most %v", maxPrice)
	}
	return p, err
}

// maxPrice is the highest hourly price that the solver can handle.
const maxPrice = 10_000 * drover.Dollar
