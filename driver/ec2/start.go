package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

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
