// Package plan cuts a conversion into tasks: pieces of one database, of types that the source reads or the target writes
// together, and of one span of user keys. A plan depends on the source and the filter alone, so that a run which continues
// another one has the same, whatever its workers and its memory are. The journal keeps it as JSON.
//
// A Sample is a part of a plan that stands for the whole, and ProofTasks what to read of a finished target.
package plan
