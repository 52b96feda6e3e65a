// Package drover is the vocabulary of Drover: jobs, attempts, instances, instance types, offerings, the states they
// pass through, the kinds of error, money and sizes. Every other package speaks in these words; this one imports none
// of them and does no I/O.
//
// Three kinds of type live here. Quantities ([Money], [MilliCPU], [Bytes], [Time]) are integers, because a decision
// must come out the same on every processor. Records ([Job], [Attempt], [Instance], [Offer]) are what a program reads:
// their JSON is the same from `-o json` and over HTTP. Closed sets ([JobState], [InstanceState], [ErrorKind], …) are
// strings, so that they read well in a log, a database and a reply alike.
package drover
