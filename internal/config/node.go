package config

import (
	"encoding/json"
	"strconv"
	"strings"
)

// shape says what a node is.
type shape string

const (
	absent  shape = "nothing"
	scalar  shape = "a single value"
	list    shape = "a list"
	mapping shape = "a mapping"
)

// node is a piece of a file: what it holds and where it stands. Nodes do not change once parsed; an alias shares its
// anchor's.
type node struct {
	shape        shape
	text         string // of a scalar, as written, without quotes
	line, column int
	items        []*node // of a list
	entries      []entry // of a mapping, in the file's order, no key twice
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *node }

// get is the value under key, nil if there is none.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// find follows a path of keys and list indices as far as it leads: the place to point at for a fault, even if the key
// that is at fault was left out. A value of nothing is as good as its key left out.
func (n *node) find(path ...string) *node {
	for _, step := range path {
		next := n.get(step)
		if i, err := strconv.Atoi(step); err == nil && n.shape == list && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil || next.shape == absent {
			return n
		}
		n = next
	}
	return n
}

// at is find with the path in one text, "resources.memory".
func (n *node) at(path string) *node {
	if path == "" {
		return n
	}
	return n.find(strings.Split(path, ".")...)
}

// with returns a mapping that stands where n does and holds those of its entries that keep accepts.
func (n *node) with(keep func(e entry) bool) *node {
	part := &node{shape: mapping, line: n.line, column: n.column}
	for _, e := range n.entries {
		if keep(e) {
			part.entries = append(part.entries, e)
		}
	}
	return part
}

// MarshalJSON gives the node's content without places, keys sorted: equal contents, equal bytes.
func (n *node) MarshalJSON() ([]byte, error) {
	switch n.shape {
	case scalar:
		return json.Marshal(n.text)
	case list:
		return json.Marshal(n.items)
	case mapping:
		m := make(map[string]*node, len(n.entries))
		for _, e := range n.entries {
			m[e.key.text] = e.value
		}
		return json.Marshal(m)
	}
	return []byte("null"), nil
}
