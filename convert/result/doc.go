// Package result holds the outcome of tasks and adds it up: the fingerprints of the written records, the rows of the
// source by class, the losses and the findings. The journal stores one Result per task as JSON, and the report of a
// conversion uses the same types.
//
// All types are plain values. The package reads no data and knows no format.
package result
