package config

import (
	"slices"
	"strconv"
	"strings"

	"drover"
)

// names checks that each job has a unique name and depends only on existing jobs.
func (c *checker) names(jobs []jobFile) {
	var known []string
	line := map[string]int{}
	for i, j := range jobs {
		at := c.at(i, "name")
		switch first := line[j.Name]; {
		case j.Name == "":
			if c.at(i).get("name") != nil {
				c.addf(at, "a job needs a name")
			}
		case first > 0:
			c.addf(at, "there is already a job %s, on line %d", quote(j.Name), first)
		default:
			line[j.Name] = at.line
			known = append(known, j.Name)
			if err := CheckName(j.Name); err != nil {
				c.addErr(at, err)
			}
		}
	}
	c.dependencies(jobs, line, known)
}

// dependencies checks that jobs depend on existing jobs; line has the position of each name.
func (c *checker) dependencies(jobs []jobFile, line map[string]int, known []string) {
	unknown := func(at *node, name, own string) {
		if line[name] > 0 {
			return
		}
		var others []string
		if !c.full() { // copying the names for each of many faults would take minutes
			others = slices.DeleteFunc(slices.Clone(known), func(other string) bool { return other == own })
		}
		c.addUnknown(at, "there is no job "+quote(name)+" in this batch", name, others)
	}
	for i, j := range jobs {
		inputs := c.at(i, "inputs")
		for _, a := range j.After {
			if id, err := drover.ParseJobID(a.job); err != nil || id.Index >= 0 {
				unknown(a.at, a.job, j.Name)
			}
		}
		for k, in := range j.Inputs {
			if in.From != "" {
				unknown(inputs.find(strconv.Itoa(k), "from"), in.From, j.Name)
			}
		}
	}
}

// cycles finds jobs that depend on each other, and reports each cycle once.
func (c *checker) cycles(jobs []jobFile) {
	index := map[string]int{}
	for i, j := range jobs {
		index[j.Name] = i
	}
	const visiting, done = 1, 2
	state := make([]int, len(jobs))
	var trail []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = visiting
		trail = append(trail, jobs[i].Name)
		succeed, end := jobs[i].waitsFor()
		for _, name := range slices.Concat(succeed, end) {
			next, ok := index[name]
			switch {
			case !ok || state[next] == done:
			case state[next] == visiting && !c.full():
				c.ring(i, trail, name)
			case state[next] == visiting:
			default:
				visit(next)
			}
		}
		trail = trail[:len(trail)-1]
		state[i] = done
	}
	for i := range jobs {
		if state[i] == 0 {
			visit(i)
		}
	}
}

// ring reports that the job at the end of the trail depends on one that is on it.
func (c *checker) ring(i int, trail []string, name string) {
	start := 0
	for trail[start] != name {
		start++
	}
	c.addf(c.at(i, "after"), "circular dependency between jobs: %s", strings.Join(append(trail[start:len(trail):len(trail)], name), " → "))
}
