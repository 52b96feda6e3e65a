// Package configimport converts other programs' configurations to Drover's: prevmtable's pool, kip's standby cells, and
// the groups min:max:type:name of autoscalers' command lines. It reports everything that it cannot carry over.
package configimport

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"drover"
)

// Result is a configuration, and what comes with it.
type Result struct {
	YAML  []byte
	Files map[string]string // files that the configuration names, in the same folder
	Notes []string          // what was not carried over, or only with changes, in order
}

// Kinds returns what can be imported.
func Kinds() []string { return []string{"prevmtable", "kip", "groups"} }

// Import converts data of a kind. With files, scripts and templates become files that the configuration names;
// otherwise they are left out, and a note says so.
func Import(kind string, data []byte, files bool) (Result, error) {
	w := &writer{files: files, result: Result{Files: map[string]string{}}}
	var err error
	switch kind {
	case "prevmtable":
		err = w.prevmtable(data)
	case "kip":
		err = w.kip(data)
	case "groups":
		err = w.groups(string(data))
	default:
		err = drover.Errorf(drover.KindInvalid, "%.40q is not a known format", kind).WithHint("use prevmtable, kip or groups")
	}
	if err != nil {
		return Result{}, err
	}
	return w.end()
}

// writer builds a configuration.
type writer struct {
	files  bool
	result Result
	fleet  string
	clouds yaml.MapSlice
	pools  yaml.MapSlice
}

func (w *writer) notef(format string, args ...any) {
	w.result.Notes = append(w.result.Notes, fmt.Sprintf(format, args...))
}

// file adds a file, and reports whether the configuration may name it.
func (w *writer) file(name, text, what string) bool {
	if !w.files {
		w.notef("%s: not converted; to write it to a file, use --files FOLDER", what)
		return false
	}
	w.result.Files[name] = text
	return true
}

func (w *writer) end() (Result, error) {
	whole := yaml.MapSlice{pair("version", 1), pair("fleet", w.fleet), pair("clouds", w.clouds), pair("pools", w.pools)}
	text, err := yaml.MarshalWithOptions(whole, yaml.Indent(2))
	w.result.YAML = text
	return w.result, err
}

func pair(key string, value any) yaml.MapItem { return yaml.MapItem{Key: key, Value: value} }

// standIn adds a placeholder cloud if the source names none. It allows as many instances as the pools may have.
func (w *writer) standIn(most int) {
	w.cloud("aws", "us-east-1", most)
	w.notef("no cloud was converted: ec2 in us-east-1 is a placeholder; write your own under clouds")
}

// cloud adds an EC2 cloud.
func (w *writer) cloud(name, region string, most int) {
	w.clouds = yaml.MapSlice{pair(name, yaml.MapSlice{pair("driver", "ec2"), pair("region", region), pair("max_instances", max(1, most))})}
}
