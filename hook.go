package drover

// Hook names an event in an instance's life that runs a user's script.
type Hook string

// The hooks.
const (
	HookCreated   Hook = "created"   // its cloud accepted the create request
	HookReady     Hook = "ready"     // its first boot has succeeded: it answers, or, if nobody logs in, it runs
	HookStopped   Hook = "stopped"   // Drover stops it in order to start it again; then it becomes ready once more
	HookDestroyed Hook = "destroyed" // it was destroyed, and its cloud no longer lists it
	HookVanished  Hook = "vanished"  // it is gone, or stopped, but not by Drover
	HookExhausted Hook = "exhausted" // a cloud has no capacity left in a zone; runs once until the zone has capacity again
	HookBroken    Hook = "broken"    // Drover considers it broken, and has not destroyed it yet
)

// Hooks lists all hooks.
func Hooks() []Hook {
	return []Hook{HookCreated, HookReady, HookStopped, HookDestroyed, HookVanished, HookExhausted, HookBroken}
}
