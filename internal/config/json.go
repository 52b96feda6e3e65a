package config

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// jsonReader turns valid JSON into nodes with their places.
type jsonReader struct {
	*faults
	data   []byte
	tokens *json.Decoder
	nodes  int
	at     int // the offset up to which line and column are counted
	line   int
	column int
	broken bool
}

// parseJSON parses valid JSON into nodes, within YAML's limits. If it returns nil, f has the reason.
func parseJSON(data []byte, f *faults) *node {
	r := &jsonReader{faults: f, data: data, tokens: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	r.tokens.UseNumber()
	root := r.value(0)
	if r.broken {
		return nil
	}
	return root
}

// next returns the next token, and an empty node at its start.
func (r *jsonReader) next() (json.Token, *node) {
	begin := int(r.tokens.InputOffset())
	for begin < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[begin]) >= 0 {
		begin++
	}
	for r.at < begin {
		char, size := utf8.DecodeRune(r.data[r.at:])
		r.at += size
		r.column++
		if char == '\n' {
			r.line, r.column = r.line+1, 1
		}
	}
	token, err := r.tokens.Token()
	if err != nil {
		r.fail(&node{line: r.line, column: r.column}, "this is not valid JSON")
	}
	return token, &node{line: r.line, column: r.column}
}

func (r *jsonReader) fail(n *node, format string, args ...any) {
	r.addf(n, format, args...)
	r.broken = true
}

// value reads one value.
func (r *jsonReader) value(depth int) *node {
	token, n := r.next()
	if r.nodes++; r.nodes > maxNodes && !r.broken {
		r.fail(n, "the file has too many keys and values")
	}
	switch token := token.(type) {
	case nil:
		n.shape = absent
	case json.Delim:
		if depth == maxDepth && !r.broken {
			r.fail(n, "nested too deeply")
		}
		r.inner(token, n, depth+1)
	case string:
		n.shape, n.text = scalar, token
	case json.Number:
		n.shape, n.text = scalar, token.String()
	case bool:
		n.shape, n.text = scalar, "false"
		if token {
			n.text = "true"
		}
	}
	return n
}

// inner reads the content of a list or mapping up to its end.
func (r *jsonReader) inner(open json.Delim, n *node, depth int) {
	n.shape = list
	if open == '{' {
		n.shape = mapping
	}
	seen := map[string]*node{}
	for !r.broken && r.tokens.More() {
		if n.shape == list {
			n.items = append(n.items, r.value(depth))
			continue
		}
		token, key := r.next()
		name, _ := token.(string)
		if first := seen[name]; first != nil {
			r.fail(key, "%s is given twice, first on line %d", name, first.line)
		}
		key.shape, key.text = scalar, name
		seen[name] = key
		n.entries = append(n.entries, entry{key, r.value(depth)})
	}
	if !r.broken {
		r.next()
	}
}
