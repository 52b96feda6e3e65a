package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a configuration with a comment for every key there is. It can be used as it stands.
func Example() string { return example }

//go:embed batch.yaml
var batchExample string

// BatchExample is a batch with a comment for every key there is. It can be run as it stands.
func BatchExample() string { return batchExample }
