package convert

import (
	"kvferry/convert/result"
	"kvferry/convert/work"
)

// Types that reports and errors are made of.
type (
	// LossKind sums up the losses of one kind.
	LossKind = result.LossKind
	// LossError means that the target cannot hold all of the source, and the losses were not allowed.
	LossError = result.LossError
	// PartDigest is the fingerprint of one database and type.
	PartDigest = result.PartDigest
	// FindingKind sums up the findings of one kind.
	FindingKind = result.FindingKind
	// Sample is one example of a loss or a finding.
	Sample = result.Sample
	// CountError means that a finished target does not match the rows and files written. It was not published.
	CountError = work.CountError
	// UnfinishedError is the reason why a run ended without a target, and the state of its work.
	UnfinishedError = work.UnfinishedError
	// ResumeError means that the work of an unfinished run cannot be continued.
	ResumeError = work.ResumeError
	// LeftError means that an unfinished conversion left its work directory.
	LeftError = work.LeftError
	// MissingError means that a target cannot be finished, because parts of it are missing.
	MissingError = work.MissingError
	// PublishedError is an error after the target was published: target and report are complete.
	PublishedError = work.PublishedError
)

// LossOf returns the kind of loss that a finding means, or "".
func LossOf(kind, severity string) string { return result.LossOf(kind, severity) }

// ReportPath returns the path of the report of a conversion to target.
func ReportPath(target string) string { return work.ReportPath(target) }

// WorkPath returns the path of the work directory of a conversion to target.
func WorkPath(target string) string { return work.Path(target) }

// IsWork reports whether a path has the name of a work directory.
func IsWork(path string) bool { return work.IsWork(path) }

// IsUnfinished reports whether a path leads to the work directory of an unfinished conversion.
func IsUnfinished(path string) bool { return work.IsUnfinished(path) }

// IsReport reports whether a path is that of the report of a conversion or of a finished part.
func IsReport(path string) bool { return work.IsReport(path) }

// CheckTemp refuses a directory for temporary files that does not exist or is inside the source.
func CheckTemp(source, temp string) error { return work.CheckTemp(source, temp) }

// CheckOutput refuses an output file that is a directory, whose directory is missing, or that is inside the source,
// also through links. It ignores "".
func CheckOutput(source, file string) error { return work.CheckOutput(source, file) }
