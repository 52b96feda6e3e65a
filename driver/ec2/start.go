package ec2

import "context"

// Stop stops an instance; its volumes are still paid. A spot instance cannot be stopped, which is KindUnsupported.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return classify("stop instance "+id, "", c.api.stopInstance(ctx, id))
}

// Start starts an instance that was stopped.
func (c *cloud) Start(ctx context.Context, id string) error {
	return classify("start instance "+id, "", c.api.startInstance(ctx, id))
}
