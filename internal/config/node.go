package config

import (
	"encoding/json"
	"strconv"
	"strings"
)

// shape is the kind of a node.
type shape string

const (
	absent  shape = "nothing"
	scalar  shape = "a single value"
	list    shape = "a list"
	mapping shape = "a mapping"
)

// node is a piece of a file: its content and its place. Nodes do not change after parsing; an alias shares its anchor's
// nodes.
type node struct {
	shape        shape
	text         string // of a scalar, as written, without quotes
	line, column int
	items        []*node // of a list
	entries      []entry // of a mapping, in the file's order, no key twice
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *node }

// get returns the value under key, nil if there is none.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// find follows a path of keys and list indices as far as it exists. That is the place to report a fault, even if the
// key at fault was left out. A null value counts as a missing key.
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

// at is find with the path as one text, "resources.memory".
func (n *node) at(path string) *node {
	if path == "" {
		return n
	}
	return n.find(strings.Split(path, ".")...)
}

// with returns a mapping at n's place with those entries that keep accepts.
func (n *node) with(keep func(e entry) bool) *node {
	part := &node{shape: mapping, line: n.line, column: n.column}
	for _, e := range n.entries {
		if keep(e) {
			part.entries = append(part.entries, e)
		}
	}
	return part
}

// MarshalJSON returns the node's content without places and with sorted keys: equal content gives equal bytes.
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
