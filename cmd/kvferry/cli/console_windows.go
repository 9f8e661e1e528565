package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// CanColor makes a console understand escape sequences and reports whether it does. Those before Windows 10 cannot.
func CanColor(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
