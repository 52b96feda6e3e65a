// Package drover is the vocabulary of Drover: jobs, attempts, instances, instance types, offerings, the states they
// pass through, the kinds of error, money and sizes. Every other package uses these types; this one imports none of
// those packages and does no I/O.
//
// Three kinds of type live here. Quantities ([Money], [MilliCPU], [Bytes], [Time]) are integers, because a decision
// must be the same on every processor. Records ([Job], [Attempt], [Instance], [Offer]) are what programs read: their
// JSON is the same from `-o json` and over HTTP. Closed sets ([JobState], [InstanceState], [ErrorKind], …) are strings,
// so that they are readable in logs, databases and replies.
package drover
