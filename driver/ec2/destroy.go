package ec2

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
)

// Destroy ends an instance; its volumes go with it. Calls made at once share one call to the cloud.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.endings.end(ctx, id)
	if errs.KindOf(err) == drover.KindNotFound {
		err = nil
	}
	if err == nil && c.config.Wants(drover.Spot) {
		c.mu.Lock()
		c.buried[id] = time.Now()
		c.mu.Unlock()
	}
	return errs.Classify("destroy instance "+id, err)
}

func (c *cloud) terminate(ctx context.Context, ids []string) error {
	if err := c.api.gate.Limiter.TakeMany(eachEnding, len(ids), time.Now()); err != nil {
		return err
	}
	_, err := call(ctx, c.api, c.api.ec2().TerminateInstances, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

// mostEndings is how many instances one call ends: TerminateInstances takes up to 1,000.
const mostEndings = 1000

// endings brings together the instances that are to end: what arrives while a call is under way goes into the next one, so a fleet of a
// thousand ends in a few calls, and a single instance at once.
type endings struct {
	terminate func(ctx context.Context, ids []string) error

	mu      sync.Mutex
	busy    bool      // a call is under way; guarded by mu
	waiting []*ending // guarded by mu
}

// ending is an instance that is to end, and how that went once done is closed.
type ending struct {
	ctx  context.Context
	id   string
	done chan struct{}
	err  error
}

func newEndings(terminate func(context.Context, []string) error) *endings {
	return &endings{terminate: terminate}
}

// end ends an instance, with others.
func (e *endings) end(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := &ending{ctx: ctx, id: id, done: make(chan struct{})}
	e.mu.Lock()
	e.waiting = append(e.waiting, mine)
	first := !e.busy
	e.busy = true
	e.mu.Unlock()
	if first {
		go e.work()
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work makes calls until none waits.
func (e *endings) work() {
	for {
		e.mu.Lock()
		n := min(len(e.waiting), mostEndings)
		batch := e.waiting[:n:n]
		e.waiting = e.waiting[n:]
		e.busy = n > 0
		e.mu.Unlock()
		if n == 0 {
			return
		}
		e.call(batch)
		for _, one := range batch {
			close(one.done)
		}
	}
}

// call ends a batch. It obeys the context of the first, whose deadline is the nearest as far as it can be known; of the others, that their
// instances end is nothing that a context could still change. If one id is wrong EC2 ends none, so each is then asked for alone.
func (e *endings) call(batch []*ending) {
	ids := make([]string, len(batch))
	for i, one := range batch {
		ids[i] = one.id
	}
	err := e.terminate(batch[0].ctx, ids)
	if len(batch) == 1 || err == nil {
		for _, one := range batch {
			one.err = err
		}
		return
	}
	alone := errs.KindOf(err) == drover.KindNotFound || batch[0].ctx.Err() != nil
	for _, one := range batch {
		if one.err = err; alone {
			one.err = e.terminate(one.ctx, []string{one.id})
		}
	}
}

// Stop stops an instance; its volumes are still paid. A spot instance cannot be stopped, which is KindUnsupported.
func (c *cloud) Stop(ctx context.Context, id string) error {
	_, err := call(ctx, c.api, c.api.ec2().StopInstances, &ec2.StopInstancesInput{InstanceIds: []string{id}})
	return errs.Classify("stop instance "+id, err)
}

// Start starts an instance that was stopped.
func (c *cloud) Start(ctx context.Context, id string) error {
	_, err := call(ctx, c.api, c.api.ec2().StartInstances, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	return errs.Classify("start instance "+id, err)
}

// What can be left over.
const (
	leftoverTemplate = "launch template"
	leftoverKeyPair  = "key pair"
	leftoverVolume   = "volume"
)

// Leftovers are the fleet's launch templates and key pairs, which its instances share, and volumes that are attached to nothing.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filters := []types.Filter{filter("tag:"+driver.TagFleet, fleet)}
	ofFleet := &ec2.DescribeLaunchTemplatesInput{Filters: filters}
	templates, err := listAll[types.LaunchTemplate](ctx, c.api, c.api.ec2().DescribeLaunchTemplates, ofFleet)
	if err != nil {
		return nil, errs.Classify("list launch templates", err)
	}
	for _, t := range templates {
		all = append(all, driver.Leftover{Kind: leftoverTemplate, ID: aws.ToString(t.LaunchTemplateName), Tags: fromTags(t.Tags), Created: drover.TimeOf(aws.ToTime(t.CreateTime)), Shared: true})
	}
	keys, err := call(ctx, c.api, c.api.ec2().DescribeKeyPairs, &ec2.DescribeKeyPairsInput{Filters: filters})
	if err != nil {
		return nil, errs.Classify("list key pairs", err)
	}
	for _, k := range keys.KeyPairs {
		all = append(all, driver.Leftover{Kind: leftoverKeyPair, ID: aws.ToString(k.KeyName), Tags: fromTags(k.Tags), Created: drover.TimeOf(aws.ToTime(k.CreateTime)), Shared: true})
	}
	volumes, err := c.volumesBy(ctx, append(filters, filter("status", "available", "error"))...)
	if err != nil {
		return nil, errs.Classify("list volumes", err)
	}
	for _, v := range volumes {
		all = append(all, driver.Leftover{Kind: leftoverVolume, ID: aws.ToString(v.VolumeId), Tags: fromTags(v.Tags), Created: drover.TimeOf(aws.ToTime(v.CreateTime))})
	}
	return all, nil
}

// Remove takes a leftover away. A volume that is attached again is in use, and stays.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	var err error
	switch s.Kind {
	case leftoverTemplate:
		c.made.Forget()
		_, err = call(ctx, c.api, c.api.ec2().DeleteLaunchTemplate, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &s.ID})
	case leftoverKeyPair:
		c.made.Forget()
		_, err = call(ctx, c.api, c.api.ec2().DeleteKeyPair, &ec2.DeleteKeyPairInput{KeyName: &s.ID})
	case leftoverVolume:
		_, err = call(ctx, c.api, c.api.ec2().DeleteVolume, &ec2.DeleteVolumeInput{VolumeId: &s.ID})
	default:
		return drover.Errorf(drover.KindInvalid, "a %s is nothing that this cloud takes away", s.Kind)
	}
	if errs.CodeOf(err) == "VolumeInUse" {
		return nil
	}
	return errs.Gone("take away "+s.Kind+" "+s.ID, err)
}
