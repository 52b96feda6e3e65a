// Package protos contains the messages that an autoscaler and its cloud provider exchange. make protos generates it from
// the .proto files in this folder.
package protos
