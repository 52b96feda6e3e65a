package engine

import "drover/internal/engine/fleet"

// Instances and attempts, as the store and the shells know them.
type (
	Instance = fleet.Instance
	Observed = fleet.Observed
	Attempt  = fleet.Attempt
	Departed = fleet.Departed
	Sighting = fleet.Sighting
	Tagging  = fleet.Tagging
)
