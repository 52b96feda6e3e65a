package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"drover"
)

// encodedBatch and encodedJob are a submission in the form that EncodeSubmission writes.
type encodedBatch struct {
	Name string       `json:"name"`
	Jobs []encodedJob `json:"jobs"`

	Notify *drover.Notify `json:"notify,omitempty"`
}

type encodedJob struct {
	Name       string            `json:"name"`
	Array      string            `json:"array,omitempty"`
	Gang       int               `json:"gang,omitempty"`
	Foreach    []string          `json:"foreach,omitempty"`
	MaxRunning int               `json:"max_running,omitempty"`
	Command    []string          `json:"command,omitempty"`
	Image      string            `json:"image,omitempty"`
	Resources  encodedResources  `json:"resources"`
	Placement  drover.Placement  `json:"placement"`
	MaxPrice   string            `json:"max_price,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Inputs     []drover.Input    `json:"inputs,omitempty"`
	Outputs    []any             `json:"outputs,omitempty"`
	After      []any             `json:"after,omitempty"`
	Spot       drover.SpotPolicy `json:"spot"`
	Attempts   int               `json:"attempts"`
	Retry      *encodedRetry     `json:"retry,omitempty"`
	Timeout    string            `json:"timeout,omitempty"`
	Expected   string            `json:"expected,omitempty"`
	MaxWait    string            `json:"max_wait,omitempty"`
	Priority   int               `json:"priority"`
	Labels     map[string]string `json:"labels,omitempty"`
	Files      *[]drover.File    `json:"files,omitempty"`
}

type encodedRetry struct {
	ExitCodes []int  `json:"exit_codes,omitempty"`
	Times     int    `json:"times"`
	Delay     string `json:"delay"`
}

type encodedResources struct {
	VCPUs  string       `json:"vcpus"`
	Memory drover.Bytes `json:"memory"`
	Disk   drover.Bytes `json:"disk"`
	GPUs   int          `json:"gpus,omitempty"`
	Arch   drover.Arch  `json:"arch,omitempty"`
}

// EncodeSubmission encodes a batch so that ParseSubmission returns the same batch, except for its user. The error is
// KindInvalid if the batch has a value that is not UTF-8 text.
func EncodeSubmission(b drover.Batch) ([]byte, error) {
	// JSON would replace invalid bytes with another character.
	for _, text := range texts(b) {
		if !utf8.ValidString(text) {
			return nil, drover.Errorf(drover.KindInvalid, "%s is not valid UTF-8, so it cannot be submitted", quote(text))
		}
	}
	e := encodedBatch{Name: b.Name, Notify: b.Notify, Jobs: make([]encodedJob, 0, len(b.Jobs))}
	for _, j := range b.Jobs {
		e.Jobs = append(e.Jobs, encode(j))
	}
	data, err := json.Marshal(e)
	if err == nil && len(data) > MaxSubmission {
		err = drover.Errorf(drover.KindInvalid, "the batch is larger than 8 MiB").WithHint("submit it in parts, or move large values into input files")
	}
	return data, err
}

func encode(j drover.JobSpec) encodedJob {
	e := encodedJob{
		Name: j.Name, Array: j.Array.String(), Gang: j.Gang, MaxRunning: j.MaxRunning, Command: j.Command, Image: j.Image, Placement: j.Placement, Env: j.Env, Inputs: j.Inputs,
		Spot: j.Spot, Attempts: j.Attempts, Priority: j.Priority, Labels: j.Labels,
		Resources: encodedResources{j.Resources.CPU.String(), j.Resources.Memory, j.Resources.Disk, j.Resources.GPUs, j.Resources.Arch},
	}
	for _, job := range j.After {
		e.After = append(e.After, job)
	}
	if len(j.AfterAny) > 0 {
		e.After = append(e.After, map[string]any{"any": j.AfterAny})
	}
	for _, glob := range j.Outputs {
		if slices.Contains(j.Required, glob) {
			e.Outputs = append(e.Outputs, map[string]any{"glob": glob, "required": true})
		} else {
			e.Outputs = append(e.Outputs, glob)
		}
	}
	if most := j.Placement.MaxPrice; most != 0 {
		e.MaxPrice, e.Placement.MaxPrice = fmt.Sprintf("%d.%09d", most/drover.Dollar, most%drover.Dollar), 0
	}
	if j.Timeout != 0 {
		e.Timeout = j.Timeout.String()
	}
	if j.Expected != 0 {
		e.Expected = j.Expected.String()
	}
	if j.MaxWait != 0 {
		e.MaxWait = j.MaxWait.String()
	}
	if j.Retry.Times > 0 {
		e.Retry = &encodedRetry{j.Retry.ExitCodes, j.Retry.Times, j.Retry.Delay.String()}
	}
	if len(j.Foreach) > 0 {
		e.Array, e.Foreach = "", j.Foreach
	}
	if len(j.Foreach) > 0 || slices.ContainsFunc(j.Inputs, func(in drover.Input) bool { return in.Path != "" }) {
		files := append([]drover.File{}, j.Files...)
		e.Files = &files
	}
	return e
}

// texts returns all texts in a batch.
func texts(b drover.Batch) []string {
	all := []string{b.Name}
	for _, j := range b.Jobs {
		all = append(all, j.Name, j.Image, j.Placement.Cloud, j.Placement.Zone, j.Placement.Type)
		all = slices.Concat(all, j.Foreach, j.Command, j.Outputs, j.After, j.AfterAny)
		for _, m := range []map[string]string{j.Env, j.Labels} {
			all = slices.AppendSeq(slices.AppendSeq(all, maps.Keys(m)), maps.Values(m))
		}
		for _, in := range j.Inputs {
			all = append(all, in.Path, in.From)
		}
		for _, f := range j.Files {
			all = append(all, f.Path)
		}
	}
	return all
}
