// Package transfer does a task: Run reads its records, leaves out what the target cannot hold, hashes the rest and writes it;
// Prove reads a part of the finished target and hashes that. FindRenames looks beforehand for records whose names other
// types keep.
//
// Records go from the reader to the writer as they come, strings several at a time, elements in batches that are views of
// what was read. Nothing is allocated for a record.
package transfer
