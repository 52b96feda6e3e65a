package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a configuration with a comment for every key there is. It can be used as it stands.
func Example() string { return example }
