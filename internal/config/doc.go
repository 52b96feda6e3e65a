// Package config reads the two files that people write for Drover: the configuration and the batch. Programs also
// submit the batch.
//
// A file goes through three steps. [parse] turns YAML into a tree of nodes with their line and column, within limits on
// size, depth and the expansion of aliases. The decoder decodes that tree into Go types, strictly: an unknown key, a
// wrong unit or a missing value is a [Fault] at its place. Checks then compare the values (names, dependencies,
// intervals) and use the tree to find each place. All steps add to one list of faults, so a person sees every fault at
// once, in the order of the file.
//
// Invariants: a value is returned only if there was no fault; every fault of a file has a place in it; the JSON Schema
// is made from the same types as the decoder, by the same walk over their fields, so the two cannot differ. Equal files
// give equal values and hashes. Reading has no effects; it looks at the environment and at other files only for secrets
// and to check that inputs exist.
//
// Drivers have their own keys, which this package does not define. Each [Cloud] has a Decode that decodes them just as
// strictly into the driver's type.
package config
