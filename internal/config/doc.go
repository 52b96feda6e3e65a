// Package config reads the two files that people write for Drover: the configuration and the batch, the latter also as
// programs submit it.
//
// A file goes through three steps. [parse] turns YAML into a tree of nodes that know their line and column, within
// limits on size, depth and what aliases may grow to. The decoder lays that tree over Go types, strictly: an unknown
// key, a wrong unit, a missing value is a [Fault] at its place. Checks then look at the values together (names,
// dependencies, intervals) and ask the tree where each stands. All steps add to one list of faults, so a person sees
// everything that is wrong at once, in the order of the file.
//
// Invariants: a value is returned only if there was no fault; every fault of a file has a place in it; the JSON Schema
// is made from the types that decode, by the same walk over their fields, so the two cannot differ. Equal files give
// equal values and hashes. Reading has no effects; it looks at the environment and at other files only for secrets and
// to see that inputs exist.
//
// Drivers have keys of their own, which this package cannot know. Each [Cloud] carries a Decode that reads them just as
// strictly into the driver's type.
package config
