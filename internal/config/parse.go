package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on what a file may make us do. Deep nesting and many keys cost the YAML parser time that grows with their square, and
// aliases can grow a small file beyond any memory.
const (
	maxSize   = 4 << 20
	maxDepth  = 32
	maxIndent = 200 // columns
	maxKeys   = 2000
	maxNodes  = 500_000
)

// parse reads one YAML document into nodes. If it returns nil, it has said why in f.
func parse(data []byte, f *faults) (root *node) {
	whole := &node{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > maxSize:
		f.addf(whole, "the file is larger than 4 MiB")
		return nil
	case !utf8.Valid(data):
		f.addf(whole, "the file is not UTF-8 text")
		return nil
	}
	// The YAML parser is not ours: a file that makes it panic is a bad file, not a reason to go down.
	defer func() {
		if r := recover(); r != nil {
			f.addf(whole, "the file is not YAML that can be read: %v", r)
			root = nil
		}
	}()
	doc := document(data, f)
	if doc == nil {
		return nil
	}
	b := &builder{faults: f, anchors: map[string]*node{}}
	root = b.node(doc, 0)
	if b.broken {
		return nil
	}
	return root
}

// document finds the one document of a file, an empty mapping if there is none.
func document(data []byte, f *faults) ast.Node {
	tokens := lexer.Tokenize(string(data))
	if t, why := outsized(tokens); t != nil {
		f.addf(place(t), "%s", why)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.addf(placeOf(err), "%s", messageOf(err))
		return nil
	}
	var found ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case found != nil:
			f.add(place(cmp.Or(doc.Start, doc.Body.GetToken())), "a second document begins here", "a file holds one; remove the line ---")
			return nil
		default:
			found = doc.Body
		}
	}
	if found == nil {
		f.addf(&node{}, "the file is empty")
	}
	return found
}

// outsized finds the token at which nesting, or the number of keys of one mapping, passes its limit, and says which. It
// follows block style by columns: every level begins at least one further right, and what begins to its left ends it.
func outsized(tokens token.Tokens) (*token.Token, string) {
	flow := 0
	var keys [maxIndent + 1]int // of the mapping that is open at each column
	for _, t := range tokens {
		begin := t
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			if flow++; flow > maxDepth {
				return t, "nested too deep"
			}
			continue
		case token.SequenceEndType, token.MappingEndType:
			flow--
			continue
		case token.MappingValueType:
			begin = cmp.Or(t.Prev, t)
		case token.SequenceEntryType:
		default:
			continue
		}
		column := begin.Position.Column
		switch {
		case flow > 0:
			continue
		case column > maxIndent:
			return t, "nested too deep"
		case t.Type == token.MappingValueType:
			keys[column]++
		}
		if keys[column] > maxKeys {
			return t, "more keys in one mapping than can be read"
		}
		clear(keys[column+1:])
	}
	return nil, ""
}

// place is an empty node that stands where t does.
func place(t *token.Token) *node {
	if t == nil || t.Position == nil {
		return &node{}
	}
	return &node{line: t.Position.Line, column: t.Position.Column}
}

func placeOf(err error) *node {
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		return place(syntax.GetToken())
	}
	return &node{}
}

func messageOf(err error) string {
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		return syntax.GetMessage()
	}
	return err.Error()
}

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

// node converts one node. What an alias stands for is counted each time that it is used, as if it had been written out.
func (b *builder) node(n ast.Node, depth int) *node {
	if n == nil {
		return &node{shape: absent}
	}
	at := place(n.GetToken())
	if b.nodes++; b.nodes > maxNodes || depth > maxIndent {
		if b.broken {
			return at
		}
		return b.fail(at, "the file holds more than can be read")
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
		return b.fail(at, "YAML of this kind (%s) is not read here", n.Type())
	}
	return at
}

// alias gives what the anchor of this name marks.
func (b *builder) alias(at *node, name string) *node {
	target, ok := b.anchors[name]
	if !ok {
		return b.fail(at, "there is no anchor &%s above", name)
	}
	if b.nodes += target.count(maxNodes - b.nodes); b.nodes > maxNodes {
		return b.fail(at, "the aliases of this file stand for more than can be read")
	}
	return target
}

// count is how many nodes there are under n, aliases written out; it stops soon after limit.
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

// mapping fills at with the entries. What is merged in by << yields to keys that are written out.
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
			b.fail(key, "%s stands here twice, first in line %d", name, first.line)
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
	default:
		b.fail(from, "<< wants a mapping")
	}
}

// keyText is a mapping's key, if it is plain enough to be one.
func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return fmt.Sprint(k.GetToken().Value), true
	}
	return "", false
}
