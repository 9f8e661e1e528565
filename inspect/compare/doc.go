// Package compare finds the differences between two datasets of any formats. Diff tells them, Patch writes the operations
// that turn a server into the other side, and Fingerprints compares a dataset with the file of an earlier one.
//
// Fingerprints are compared first. The databases and types in which they differ are merged by key, and the elements of a
// record by name, so that neither side is held in memory. A DBMap matches databases that have another name on the other
// side.
package compare
