package command

// The limits of scans.
const (
	MaxParked = maxParked
	SmallScan = smallScan
)
