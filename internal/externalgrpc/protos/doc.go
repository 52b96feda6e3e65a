// Package protos is what an autoscaler and its cloud provider say to each other, generated from the .proto files beside it by make protos.
package protos
