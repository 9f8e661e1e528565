package command

// cursors are the positions of scans.
type cursors struct{}
