//go:build !windows

package disk

import "os"

var (
	open     = os.OpenFile
	openTemp = os.CreateTemp
)
