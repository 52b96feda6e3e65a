package config

import "github.com/goccy/go-yaml/ast"

// builder turns the parser's tree into nodes, which resolves aliases and merges.
type builder struct {
	faults  *faults
	anchors map[string]*node
	nodes   int
	broken  bool
}

func (b *builder) fail(n *node, format string, args ...any) *node {
	b.faults.addf(n, format, args...)
	b.broken = true
	return n
}

// node converts one node. The content of an alias is counted each time it is used, as if it were written out.
func (b *builder) node(n ast.Node, depth int) *node {
	if n == nil {
		return &node{shape: absent}
	}
	at := place(n.GetToken())
	if b.nodes++; b.nodes > maxNodes || depth > maxIndent {
		if b.broken {
			return at
		}
		return b.fail(at, "the file has too many keys and values")
	}
	switch n := n.(type) {
	case *ast.NullNode:
		at.shape = absent
	case *ast.MappingNode:
		b.mapping(at, n.Values, depth)
		if n.IsFlowStyle {
			at.line, at.column = place(n.Start).line, place(n.Start).column
		}
	case *ast.MappingValueNode:
		b.mapping(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		at.shape = list
		for _, item := range n.Values {
			at.items = append(at.items, b.node(item, depth+1))
		}
	case *ast.AnchorNode:
		at = b.node(n.Value, depth+1)
		b.anchors[n.Name.String()] = at
	case *ast.AliasNode:
		return b.alias(at, n.Value.String())
	case *ast.LiteralNode:
		at.shape, at.text = scalar, n.Value.Value
	case *ast.StringNode:
		at.shape, at.text = scalar, n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		at.shape, at.text = scalar, n.GetToken().Value
	default:
		return b.fail(at, "this YAML construct (%s) is not supported here", n.Type())
	}
	return at
}

// alias returns the node that an anchor marks.
func (b *builder) alias(at *node, name string) *node {
	target, ok := b.anchors[name]
	if !ok {
		return b.fail(at, "the anchor &%s is not defined above", name)
	}
	if b.nodes += target.count(maxNodes - b.nodes); b.nodes > maxNodes {
		return b.fail(at, "the aliases in this file expand to too much data")
	}
	return target
}

// count returns the number of nodes under n, with aliases written out; it stops soon after limit.
func (n *node) count(limit int) int {
	total := 1
	for _, item := range n.items {
		if total > limit {
			break
		}
		total += item.count(limit - total)
	}
	for _, e := range n.entries {
		if total > limit {
			break
		}
		total += 1 + e.value.count(limit-total)
	}
	return total
}

// mapping fills at with the entries. Keys that are written out take precedence over those merged in by <<.
func (b *builder) mapping(at *node, values []*ast.MappingValueNode, depth int) {
	at.shape = mapping
	seen := map[string]*node{}
	var merged []*node
	for i, v := range values {
		key := place(v.Key.GetToken())
		if i == 0 {
			at.line, at.column = key.line, key.column
		}
		value := b.node(v.Value, depth+1)
		if value.line == 0 {
			value.line, value.column = key.line, key.column
		}
		if v.Key.IsMergeKey() {
			merged = append(merged, value)
			continue
		}
		name, ok := keyText(v.Key)
		if !ok {
			b.fail(key, "this cannot be a key")
			continue
		}
		if first := seen[name]; first != nil {
			b.fail(key, "%s is given twice, first on line %d", name, first.line)
			continue
		}
		key.shape, key.text = scalar, name
		seen[name] = key
		at.entries = append(at.entries, entry{key, value})
	}
	for _, m := range merged {
		b.merge(at, m, seen)
	}
}

// merge adds the entries of from, or of each mapping in it, whose keys at does not have yet.
func (b *builder) merge(at, from *node, seen map[string]*node) {
	switch from.shape {
	case list:
		for _, item := range from.items {
			b.merge(at, item, seen)
		}
	case mapping:
		for _, e := range from.entries {
			if seen[e.key.text] == nil {
				seen[e.key.text] = e.key
				at.entries = append(at.entries, e)
			}
		}
	case absent, scalar:
		b.fail(from, "<< needs a mapping")
	}
}

// keyText returns a mapping's key, if it is plain text.
func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	return "", false
}
