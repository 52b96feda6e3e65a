package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/daemon"
)

// completer offers completions.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete makes the shell offer values for a flag, which must exist.
func complete(cmd *cobra.Command, flag string, offer completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // the flag does not exist
	}
}

// require makes flags required, which must exist.
func require(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

// plainWords returns words of any type as strings.
func plainWords[W ~string](words []W) (list []string) {
	for _, w := range words {
		list = append(list, string(w))
	}
	return list
}

func completeWords[W ~string](words ...W) completer {
	offered := plainWords(words)
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRuns offers the unfinished runs.
func completeRuns(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, err := daemon.StateHome()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return daemon.UnfinishedRuns(home), cobra.ShellCompDirectiveNoFileComp
}

// completeClouds offers the clouds of the configuration in force.
func (a *app) completeClouds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.loadConfig(a.config, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.CloudNames(), cobra.ShellCompDirectiveNoFileComp
}

// completeBatch offers batch files.
func completeBatch(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completionTime is how long a shell waits for a controller's completions.
const completionTime = time.Second

// offer offers a word for each item of the controller: quickly, and none if it cannot be reached.
func offer[T any](a *app, list func(context.Context, drover.Service) ([]T, error), word func(T) string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	svc, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	items, _ := list(ctx, svc) // those that arrive in time
	var words []string
	for _, item := range items {
		words = append(words, word(item))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// distinct offers each word once, in order.
func distinct(words []string, directive cobra.ShellCompDirective) ([]string, cobra.ShellCompDirective) {
	slices.Sort(words)
	return slices.Compact(words), directive
}

// mostOffered limits the jobs offered to the newest ones: more would not help.
const mostOffered = 200

// completeJobs offers the jobs in one of these states, or all of them, each with its name.
func (a *app) completeJobs(states ...drover.JobState) completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Job, error) {
			jobs, err := gather(allJobs(ctx, svc, drover.JobFilter{States: states}))
			jobs = slices.DeleteFunc(jobs, func(j drover.Job) bool { return !strings.HasPrefix(j.ID.String(), typed) })
			return jobs[max(0, len(jobs)-mostOffered):], err
		}, func(j drover.Job) string {
			return j.ID.String() + "\t" + drover.Sanitize(j.Name) + ", " + jobStateWords(j)
		})
	}
}

// completeBatches offers the names of batches.
func (a *app) completeBatches(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return distinct(offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Job, error) {
		return gather(allJobs(ctx, svc, drover.JobFilter{}))
	}, func(j drover.Job) string { return drover.Sanitize(j.Batch) }))
}

// completeInstances offers the names of instances.
func (a *app) completeInstances(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Instance, error) {
		return gather(allInstances(ctx, svc, drover.InstanceFilter{}))
	}, func(in drover.Instance) string {
		return drover.Sanitize(in.Name) + "\t" + drover.Sanitize(in.Type) + ", " + instanceStateWords(in)
	})
}

// completePools offers the names of pools.
func (a *app) completePools(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Pool, error) { return svc.Pools(ctx) }, func(p drover.Pool) string {
		return fmt.Sprintf("%s\t%s %d, has %d", drover.Sanitize(p.Name), p.Kind, p.Wanted, p.Instances)
	})
}

// completeSubjects offers what can be explained: jobs, instances, pools, clouds and, once a cloud is typed, its
// offerings.
func (a *app) completeSubjects(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	jobs, _ := a.completeJobs()(cmd, args, typed)
	instances, directive := a.completeInstances(cmd, args, typed)
	offers, _ := a.completeOffers(typed)
	pools, _ := a.completePools(cmd, args, typed)
	for i, p := range pools {
		pools[i] = "pool/" + p
	}
	return slices.Concat([]string{"fleet"}, jobs, instances, pools, offers), directive
}

// completeOffers offers the names of clouds or, once one is typed, its offerings.
func (a *app) completeOffers(typed string) ([]string, cobra.ShellCompDirective) {
	cloud, _, within := strings.Cut(typed, "/")
	if !within {
		cloud = ""
	}
	return distinct(offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Offer, error) {
		return svc.Offers(ctx, drover.OfferFilter{Cloud: cloud})
	}, func(o drover.Offer) string {
		if within {
			return drover.Sanitize(offerListing.name(o))
		}
		return drover.Sanitize(o.Cloud)
	}))
}

// completeTokens offers the ids of tokens.
func (a *app) completeTokens(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return offer(a, func(ctx context.Context, svc drover.Service) ([]drover.Token, error) { return svc.Tokens(ctx) }, func(t drover.Token) string {
		return t.ID + "\t" + drover.Sanitize(t.User) + ", " + string(t.Role)
	})
}
