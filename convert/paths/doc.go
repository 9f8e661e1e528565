// Package paths looks at where sources and targets lie, and changes nothing: which paths must not be written, because they
// exist or are inside a source, and of which files a dataset consists, by whose sizes and times a change is noticed.
package paths
