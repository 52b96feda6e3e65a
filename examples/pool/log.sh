#!/bin/sh
# What a load balancer would be told: this instance answers now, or is gone.
echo "$DROVER_HOOK $DROVER_POOL $DROVER_INSTANCE $DROVER_ADDRESS" >>hooks.log
