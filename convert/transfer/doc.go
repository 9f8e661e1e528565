// Package transfer executes tasks: Run reads the records of a task, drops data that the target cannot hold, hashes
// the rest and writes it. Prove reads a part of the finished target and hashes it. FindRenames finds the records to
// rename because a record of another type keeps their name.
//
// Records stream from the reader to the writer: strings in batches, elements as views of the reader's memory. The
// copy loop allocates nothing per record.
package transfer
