package engine

import "drover"

// Kind returns the name of the event in its encoding.
func (ev Event) Kind() string { return ev.Body.kind() }

// Kind returns the name of the effect in its encoding; empty for the zero Effect.
func (f Effect) Kind() string {
	switch {
	case f.ListOfferings != nil:
		return "list_offerings"
	case f.ListInstances != nil:
		return "list_instances"
	case f.Describe != nil:
		return "describe"
	case f.Create != nil:
		return "create"
	case f.Destroy != nil:
		return "destroy"
	case f.Switch != nil:
		return "switch"
	case f.SetTags != nil:
		return "set_tags"
	case f.GrowDisk != nil:
		return "grow_disk"
	case f.Connect != nil:
		return "connect"
	case f.Disconnect != nil:
		return "disconnect"
	case f.Start != nil:
		return "start"
	case f.Stop != nil:
		return "stop"
	case f.Collect != nil:
		return "collect"
	case f.Forget != nil:
		return "forget"
	case f.Solve != nil:
		return "solve"
	case f.Fire != nil:
		return "fire"
	}
	return ""
}

// CloudName returns the cloud that the effect calls, or whose instance it connects to; empty if there is none.
func (f Effect) CloudName() string {
	switch {
	case f.ListOfferings != nil:
		return f.ListOfferings.Cloud
	case f.ListInstances != nil:
		return f.ListInstances.Cloud
	case f.Describe != nil:
		return f.Describe.Cloud
	case f.Create != nil:
		return f.Create.Cloud
	case f.Destroy != nil:
		return f.Destroy.Cloud
	case f.Switch != nil:
		return f.Switch.Cloud
	case f.SetTags != nil:
		return f.SetTags.Cloud
	case f.GrowDisk != nil:
		return f.GrowDisk.Cloud
	case f.Connect != nil:
		return f.Connect.Cloud
	case f.Fire != nil:
		return f.Fire.Cloud
	}
	return ""
}

// InstanceID returns the instance that the effect is for; 0 if there is none.
func (f Effect) InstanceID() int64 {
	switch {
	case f.Describe != nil:
		return f.Describe.Instance
	case f.Create != nil:
		return f.Create.Instance
	case f.Destroy != nil:
		return f.Destroy.Instance
	case f.Switch != nil:
		return f.Switch.Instance
	case f.SetTags != nil:
		return f.SetTags.Instance
	case f.GrowDisk != nil:
		return f.GrowDisk.Instance
	case f.Connect != nil:
		return f.Connect.Instance
	case f.Disconnect != nil:
		return f.Disconnect.Instance
	case f.Start != nil:
		return f.Start.Instance
	case f.Stop != nil:
		return f.Stop.Instance
	case f.Collect != nil:
		return f.Collect.Instance
	case f.Forget != nil:
		return f.Forget.Instance
	case f.Fire != nil:
		return f.Fire.Instance
	}
	return 0
}

// Answer returns the ID of the effect that the event answers, and its error, nil if it succeeded; 0 for an event that
// answers none.
func Answer(body Body) (effect int64, err *drover.Error) {
	switch b := body.(type) {
	case Offered:
		return b.Effect, b.Err
	case Listed:
		return b.Effect, b.Err
	case Described:
		return b.Effect, b.Err
	case Created:
		return b.Effect, nil
	case CreateFailed:
		return b.Effect, b.Err
	case Destroyed:
		return b.Effect, b.Err
	case Switched:
		return b.Effect, b.Err
	case Tagged:
		return b.Effect, b.Err
	case DiskGrown:
		return b.Effect, b.Err
	case Fired:
		return b.Effect, nil
	case Connected:
		return b.Effect, nil
	case ConnectFailed:
		return b.Effect, b.Err
	case Started:
		return b.Effect, nil
	case StartFailed:
		return b.Effect, b.Err
	case Collected:
		return b.Effect, b.Err
	case Solved:
		return b.Effect, nil
	}
	return 0, nil
}
