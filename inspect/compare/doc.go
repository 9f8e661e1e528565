// Package compare finds the differences between two datasets of any formats. Diff reports each difference, Patch
// writes the operations that turn one server's content into the other side, and Fingerprints compares a dataset with
// an earlier fingerprint file.
//
// Fingerprints are compared first. Databases and types that differ are then merged by key, and elements of a record
// by name, so neither side is held in memory. A DBMap matches databases whose names differ between the sides.
package compare
