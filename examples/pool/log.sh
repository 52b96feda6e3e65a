#!/bin/sh
# Logs the events that a load balancer would receive: an instance is ready or gone.
echo "$DROVER_HOOK $DROVER_POOL $DROVER_INSTANCE $DROVER_ADDRESS" >>hooks.log
