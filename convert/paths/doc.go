// Package paths checks the locations of sources and targets, and changes nothing. It determines the paths that must
// not be written, because they exist or are inside a source, and lists the files of a dataset, whose sizes and times
// reveal changes.
package paths
