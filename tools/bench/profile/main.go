// Profile runs kvferry and writes a CPU profile:
//
//	profile FILE ARGUMENT…
//
// FILE receives the profile of the command line that follows.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"

	"kvferry/cmd/kvferry/command"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: profile FILE ARGUMENT…")
		os.Exit(1)
	}
	code, err := profiled(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// profiled runs the command line that follows the name of the profile.
func profiled(path string) (code int, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return 0, err
	}
	os.Args = append(os.Args[:1], os.Args[2:]...)
	code = command.Main(command.Build{})
	pprof.StopCPUProfile()
	return code, f.Close()
}
