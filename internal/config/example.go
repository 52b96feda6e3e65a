package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a configuration with every key, each with a comment. It is valid as it stands.
func Example() string { return example }

//go:embed batch.yaml
var batchExample string

// BatchExample is a batch with every key, each with a comment. It can be run as it stands.
func BatchExample() string { return batchExample }
