package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on the work that a file can cause. Deep nesting and many keys cost the YAML parser quadratic time, and aliases
// can expand a small file beyond any memory.
const (
	maxSize   = MaxSubmission
	maxDepth  = 32
	maxIndent = 200 // columns
	maxKeys   = 2000
	maxNodes  = 500_000
	maxTokens = 1_000_000 // of YAML

	// YAML over a network has a lower limit: programs send JSON.
	maxSentYAML   = 256 << 10
	maxSentTokens = 50_000
)

// parseEither parses JSON as JSON, and anything else as YAML. The YAML parser would accept both, but is slow.
func parseEither(data []byte, f *faults) *node {
	if len(data) <= MaxSubmission && json.Valid(data) && utf8.Valid(data) {
		return parseJSON(data, f)
	}
	if len(data) > maxSentYAML {
		f.add(&node{}, "the YAML is larger than 256 KiB", "send it as JSON, which may be up to 8 MiB, as drover submit does")
		return nil
	}
	return parseWithin(data, maxSentTokens, f)
}

// parse parses one YAML document into nodes. If it returns nil, f has the reason.
func parse(data []byte, f *faults) *node { return parseWithin(data, maxTokens, f) }

// maxBlank limits consecutive blank lines: the YAML parser needs as much time for each as for everything before it.
const maxBlank = 200

// blankRun returns the first line that exceeds the limit of blank lines, 0 if there is none.
func blankRun(data []byte) (line int) {
	blank := 0
	for text := range bytes.Lines(data) {
		line++
		if blank++; len(bytes.TrimSpace(text)) > 0 {
			blank = 0
		}
		if blank > maxBlank {
			return line
		}
	}
	return 0
}

func parseWithin(data []byte, tokens int, f *faults) (root *node) {
	whole := &node{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the YAML parser would keep such a line break within quotes
	switch {
	case len(data) > maxSize:
		f.addf(whole, "the file is larger than 8 MiB")
		return nil
	case !utf8.Valid(data):
		f.addf(whole, "the file is not UTF-8 text")
		return nil
	}
	if line := blankRun(data); line > 0 {
		f.addf(&node{line: line, column: 1}, "there are more than %d blank lines in a row", maxBlank)
		return nil
	}
	// The YAML parser is a dependency: if it panics, the file is reported as bad and the program goes on.
	defer func() {
		if r := recover(); r != nil {
			f.addf(whole, "the file is not valid YAML: %v", r)
			root = nil
		}
	}()
	doc := document(data, tokens, f)
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

// document returns the only document of a file, an empty mapping if there is none.
func document(data []byte, most int, f *faults) ast.Node {
	tokens := lexer.Tokenize(string(data))
	if len(tokens) > most {
		f.addf(&node{}, "the file is too long: it has %d YAML tokens", len(tokens))
		return nil
	}
	if t, why := outsized(tokens); t != nil {
		f.addf(place(t), "%s", why)
		return nil
	}
	if t := mangled(tokens); t != nil {
		f.add(place(t), "there is a tab in this text", `write \t in double quotes, put the text in single quotes, or use a space`)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if why := messageOf(err); strings.Contains(why, "'\t'") {
			f.add(placeOf(err), "there is a tab here", "indent YAML with spaces")
		} else {
			f.add(placeOf(err), "invalid YAML: "+why, "check the indentation, quotes and brackets here and above")
		}
		return nil
	}
	var found ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case found != nil:
			f.add(place(cmp.Or(doc.Start, doc.Body.GetToken())), "a second document begins here", "a file may contain only one; remove the line ---")
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

// outsized returns the first token whose nesting, or whose mapping's number of keys, exceeds its limit, and which. In
// block style every level starts at least one column further right, and a token to its left ends it.
func outsized(tokens token.Tokens) (*token.Token, string) {
	flow := 0
	var keys [maxIndent + 1]int // of the mapping that is open at each column
	for _, t := range tokens {
		begin := t
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			if flow++; flow > maxDepth {
				return t, "nested too deeply"
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
			return t, "nested too deeply"
		case t.Type == token.MappingValueType:
			keys[column]++
		}
		if keys[column] > maxKeys {
			return t, "too many keys in one mapping"
		}
		clear(keys[column+1:])
	}
	return nil, ""
}

// mangled returns the first token with a tab that the YAML lexer handles wrongly: it drops one inside plain text, and
// after one in double quotes it loses its place.
func mangled(tokens token.Tokens) *token.Token {
	for _, t := range tokens {
		dropped := !strings.Contains(t.Value, "\t")
		for line := range strings.Lines(t.Origin) {
			if strings.Contains(strings.TrimSpace(line), "\t") && (dropped || t.Type == token.DoubleQuoteType) {
				return t
			}
		}
	}
	return nil
}

// place returns an empty node at t's place.
func place(t *token.Token) *node {
	if t == nil || t.Position == nil {
		return &node{}
	}
	return &node{line: t.Position.Line, column: t.Position.Column}
}

func placeOf(err error) *node {
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		return place(syntax.GetToken())
	}
	return &node{}
}

func messageOf(err error) string {
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		return syntax.GetMessage()
	}
	return err.Error()
}
