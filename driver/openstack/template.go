package openstack

import (
	"encoding/json"

	"drover"
)

// ours are the keys that no template can have, since Drover or the configuration gives them.
var ours = []string{"name", "flavorRef", "imageRef", "user_data", "metadata", "tags", "availability_zone", "networks", "security_groups",
	"key_name", "config_drive", "block_device_mapping_v2", "min_count", "max_count"}

// readTemplate reads a raw template, in the words of the body of Nova's call that creates a server.
func readTemplate(raw string) (template map[string]any, err error) {
	if raw == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(raw), &template); err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "read the template: %v", err).
			WithHint(`it is JSON, with keys of "server" in the Compute API, and "os:scheduler_hints", such as {"os:scheduler_hints": {"group": ID}}`)
	}
	for _, key := range ours {
		if _, has := template[key]; has {
			return nil, drover.Errorf(drover.KindInvalid, "the template says %s, which Drover gives for each instance", key).
				WithHint("use the keys of the cloud's configuration: networks, security_groups, key_pair, tags, image, cloud_init and so on")
		}
	}
	return template, nil
}
