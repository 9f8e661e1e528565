// Package result holds what is known at the end of a task, and of all tasks together: the fingerprints of what was
// written, the rows of the source by class, the losses and the findings, and how they are added up. The journal keeps a
// Result a task as JSON; what a report says of a conversion is of the same types.
//
// Everything here is a value: the package reads no data and knows no format.
package result
