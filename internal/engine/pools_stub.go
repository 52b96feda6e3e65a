package engine

import "drover"

// Pools are the pools as they stand.
func (e *Engine) Pools() []drover.Pool { return nil }
