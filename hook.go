package drover

// Hook names an event in an instance's life that runs a user's script.
type Hook string

// The hooks.
const (
	HookCreated   Hook = "created"   // its cloud accepted it
	HookReady     Hook = "ready"     // its first boot is proved: it answers, or runs where nobody logs in
	HookStopped   Hook = "stopped"   // Drover stops it, to start it again, after which it is ready once more
	HookDestroyed Hook = "destroyed" // it was destroyed, and its cloud lists it no longer
	HookVanished  Hook = "vanished"  // it is gone, and Drover did not destroy it
	HookExhausted Hook = "exhausted" // a cloud has nothing left in a zone: once, until it has again
	HookBroken    Hook = "broken"    // it is held to be broken, and is not yet destroyed
)

// Hooks are all hooks.
func Hooks() []Hook {
	return []Hook{HookCreated, HookReady, HookStopped, HookDestroyed, HookVanished, HookExhausted, HookBroken}
}
