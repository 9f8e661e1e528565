package convert

import "kvferry/convert/outcome"

// What a report and an error say of a conversion is of package outcome.
type (
	// LossKind sums up the losses of one kind.
	LossKind = outcome.LossKind
	// LossError means that the target cannot hold all of the source, and the losses were not allowed.
	LossError = outcome.LossError
	// FindingKind sums up the findings of one kind.
	FindingKind = outcome.FindingKind
	// Sample is one example of a loss or a finding.
	Sample = outcome.Sample
)
