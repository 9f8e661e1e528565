//go:build !linux

package disk

import "os"

// reserve does nothing and reports that.
func reserve(*os.File, int64, int64) bool { return false }

// writeBack does nothing. Sync writes everything.
func writeBack(*os.File, int64, int64) {}
