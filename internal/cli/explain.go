package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

func (a *app) explainCommand() *cobra.Command {
	var watch watchFlag
	cmd := named(&cobra.Command{
		Use:   "explain [SUBJECT]",
		Short: "Explain why something is waiting, since when, and what will change that",
		Long: `Explain why something is waiting or in its current state, since when, and what will change that. The
subject is a job's id, the name of an instance or a cloud, CLOUD/ZONE/TYPE/MARKET for an offering,
pool/NAME, or fleet. A shorter form (CLOUD/TYPE) or a pattern selects several offerings. Without a
subject, drover explain covers the fleet, then everything that is waiting, held or blocked.
docs/reasons.md explains the code of each reason.`,
		Example: "  drover explain\n  drover explain 17\n  drover explain aws\n  drover explain pool/web\n  drover explain aws/us-east-1a/m7i.large/spot\n  drover explain 'aws/m7i.*/spot'",
		Args:    wantArgs(0, 2, "one subject"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			if args = append(watch.takeInterval(args), ""); len(args) > 2 {
				return drover.Errorf(drover.KindInvalid, "drover explain takes only one subject, but also got %s", args[1])
			}
			return watch.show(ctx, a, "drover explain", func(a *app) error { return a.explain(ctx, svc, args[0]) })
		}),
	})
	watch.add(cmd)
	cmd.ValidArgsFunction = a.completeSubjects
	return cmd
}

func (a *app) explain(ctx context.Context, svc drover.Service, subject string) error {
	all, err := svc.Explain(ctx, subject)
	if err != nil {
		return err
	}
	if !a.forPeople() {
		return printList(a, listing[drover.Explanation]{name: func(e drover.Explanation) string { return e.Subject }}, each(all))
	}
	if len(all) == 0 {
		fmt.Fprintln(a.out, "nothing is waiting")
	}
	for i, e := range all {
		var job drover.Job
		if id, err := drover.ParseJobID(e.Subject); err == nil && i < maxLookups {
			job, _ = svc.Job(ctx, id) // for its name, which is not essential
		}
		fmt.Fprint(a.out, explanationText(e, job, drover.TimeOf(time.Now())))
	}
	return nil
}

// maxLookups is how many explanations get a lookup of their job's name.
const maxLookups = 50

// sameTime is how close a reason's start must be to its subject's to be left out.
const sameTime = 5 * time.Second

// basisOf says what the likely run time follows from.
func basisOf(e drover.Explanation) string {
	switch {
	case e.Stated && e.Learned:
		return "from the job's expected time and the run times of earlier jobs"
	case e.Stated:
		return "from the job's expected time"
	case e.Learned:
		return "from the run times of earlier jobs"
	}
	return "assumed until similar jobs have run; set expected for a better estimate"
}

// explanationText returns a sentence in the present tense, and a line for each reason.
func explanationText(e drover.Explanation, job drover.Job, now drover.Time) string {
	var b strings.Builder
	b.WriteString(drover.Sanitize(subjectWords(e, job)))
	if e.Since > 0 {
		fmt.Fprintf(&b, " since %s (%s)", human.Clock(e.Since), human.Age(now.Sub(e.Since)))
	}
	if len(e.Reasons) > 0 {
		b.WriteByte(':')
	}
	b.WriteByte('\n')
	if e.Likely > 0 {
		fmt.Fprintf(&b, "  likely run time: about %s, %s\n", human.Age(time.Duration(e.Likely)), basisOf(e))
	}
	for _, r := range e.Reasons {
		line := r.Code + ": " + r.Text
		if r.Code == drover.ReasonPaused {
			line += "; to resume it: drover queue resume"
		}
		if r.Since > 0 && r.Since.Sub(e.Since).Abs() >= sameTime {
			line += "; since " + human.Clock(r.Since)
		}
		line += human.UntilWords(r, now)
		fmt.Fprintf(&b, "  %s\n", drover.Sanitize(line))
	}
	return b.String()
}

// subjectWords names the subject and, for jobs and waiting things, its state.
func subjectWords(e drover.Explanation, job drover.Job) string {
	name := e.Subject
	if _, err := drover.ParseJobID(name); err == nil {
		name = "job " + name
	}
	if job.ID.Number != 0 {
		name = fmt.Sprintf("job %v (%s)", job.ID, job.Name)
	}
	switch {
	case e.Waiting && e.Subject == "fleet":
		return "fleet: " + human.Plural(e.Count, "job") + " " + stateWords(e, e.Count, "waiting")
	case e.Waiting && e.Jobs > 1:
		name += " and " + human.Plural(e.Jobs-1, "similar job")
		if e.Count > e.Jobs {
			name += fmt.Sprintf(" (%d in all, counting array elements)", e.Count)
		}
		return name + " " + stateWords(e, e.Count, "waiting")
	case e.Waiting && job.Array != nil && e.Count > 0:
		return fmt.Sprintf("%s: %d of %d %s", name, e.Count, job.Array.Size(), stateWords(e, e.Count, "waiting"))
	case e.Waiting:
		return name + " " + stateWords(e, 1, "waiting")
	case job.ID.Number == 0 && e.Since > 0:
		return name + ","
	case job.ID.Number == 0:
		return name
	case job.State == drover.JobSucceeded || job.State == drover.JobFailed:
		return name + " has " + string(job.State)
	}
	return name + " " + stateWords(e, 1, string(job.State))
}

// stateWords describes n things in a state and, if known, since when they have been in it.
func stateWords(e drover.Explanation, n int, state string) string {
	switch {
	case e.Since > 0 && n == 1:
		return "has been " + state
	case e.Since > 0:
		return "have been " + state
	case n == 1:
		return "is " + state
	}
	return "are " + state
}
