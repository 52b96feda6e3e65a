package cli

import (
	"fmt"
	"strings"
	"time"

	"drover"
	"drover/internal/human"
)

// showJob prints everything about a job.
func (a *app) showJob(j drover.Job) error {
	var f facts
	f.add("id", j.ID.String())
	f.add("name", j.Name)
	f.add("batch", j.Batch)
	f.add("user", j.User)
	f.add("state", jobStateWords(j))
	f.add("reason", reasonWords(j.Reason))
	if j.Array != nil {
		f.add("array", j.Array.String())
		f.add("gangs", gangWords(j))
		f.add("elements", countWords(j.Counts))
	}
	f.add("exit code", numberWords(j.ExitCode))
	f.add("file", j.File)
	f.add("command", commandWords(j.Command))
	f.add("image", j.Image)
	f.add("needs", needWords(j.Resources))
	f.add("placement", placementWords(j.Placement))
	f.add("spot", string(j.Spot))
	f.add("after", strings.Join(j.After, ", "))
	f.add("after the end of", strings.Join(j.AfterAny, ", "))
	for _, limit := range []struct {
		name string
		d    drover.Seconds
	}{{"timeout", j.Timeout}, {"expected", j.Expected}, {"max wait", j.MaxWait}} {
		if limit.d > 0 {
			f.add(limit.name, human.Age(time.Duration(limit.d)))
		}
	}
	f.add("priority", fmt.Sprint(j.Priority))
	f.add("labels", pairWords(j.Labels))
	f.add("submitted", human.Stamp(&j.Submitted))
	f.add("started", human.Stamp(j.Started))
	f.add("ended", human.Stamp(j.Ended))
	f.add("cost", human.Dollars(j.Cost))
	f.print(a.out)
	if j.Counts[drover.JobFailed] > 0 {
		fmt.Fprintf(a.out, "\nFailed elements: drover jobs %v --elements --state failed\n", j.ID)
		return nil
	}
	if len(j.Attempts) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	if err := printTable(a, attemptListing, each(j.Attempts)); err != nil {
		return err
	}
	for _, t := range j.Attempts {
		for _, text := range t.Warnings {
			fmt.Fprintf(a.out, "warning: attempt %d: %s\n", t.Number, drover.Sanitize(text))
		}
	}
	if last := j.Attempts[len(j.Attempts)-1]; last.State == drover.AttemptLost {
		fmt.Fprintf(a.out, "\nThe last lines of the runner's log: drover instances %s\n", last.Instance)
	}
	return nil
}

// gangWords describes how many elements of an array start together, if any do.
func gangWords(j drover.Job) string {
	if j.Gang == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d elements each", j.Array.Size()/j.Gang, j.Gang)
}

var attemptListing = listing[drover.Attempt]{
	columns: []column[drover.Attempt]{
		{title: "ATTEMPT", text: func(t drover.Attempt) string { return fmt.Sprint(t.Number) }, right: true},
		{title: "INSTANCE", text: func(t drover.Attempt) string { return t.Instance }},
		{title: "MARKET", text: func(t drover.Attempt) string { return string(t.Market) }},
		{title: "STATE", text: func(t drover.Attempt) string { return string(t.State) }},
		{title: "EXIT", text: func(t drover.Attempt) string { return numberWords(t.ExitCode) }, right: true},
		{title: "STARTED", text: func(t drover.Attempt) string { return human.Stamp(&t.Started) }},
		{title: "TOOK", text: attemptTime},
		{title: "CPU", text: func(t drover.Attempt) string { return fmt.Sprintf("%.2fs", t.CPUSeconds) }, right: true},
		{title: "MEMORY", text: func(t drover.Attempt) string { return human.Size(t.MaxRSS) }, right: true},
		{title: "REASON", text: func(t drover.Attempt) string { return reasonWords(t.Reason) }},
	},
}

func attemptTime(t drover.Attempt) string {
	if t.Ended == nil {
		return human.AgeOf(&t.Started)
	}
	return human.Age(t.Ended.Sub(t.Started))
}

func numberWords(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// countWords lists how many elements are in each state, in the order in which jobs pass through the states.
func countWords(counts map[drover.JobState]int) string {
	var words []string
	for _, s := range jobStates() {
		if n := counts[drover.JobState(s)]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(words, ", ")
}

func needWords(r drover.Resources) string {
	words := []string{fmt.Sprintf("vCPUs %v", r.CPU), "memory " + human.Size(r.Memory), "disk " + human.Size(r.Disk)}
	if r.GPUs > 0 {
		words = append(words, human.Plural(r.GPUs, "GPU"))
	}
	if r.Arch != "" {
		words = append(words, string(r.Arch))
	}
	return strings.Join(words, ", ")
}

func placementWords(p drover.JobPlacement) string {
	var words []string
	for _, w := range [][2]string{{"cloud", p.Cloud}, {"zone", p.Zone}, {"type", p.Type}} {
		if w[1] != "" {
			words = append(words, w[0]+" "+w[1])
		}
	}
	if p.MaxPrice != 0 {
		words = append(words, fmt.Sprintf("at most %s an hour", human.Dollars(p.MaxPrice)))
	}
	return strings.Join(words, ", ")
}

// commandWords formats a command as a user would type it.
func commandWords(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// quoted quotes a word so that every POSIX shell reads it as that word.
func quoted(word string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !isPlain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
