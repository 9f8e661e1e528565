package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// EnginesVariable names an environment variable with a directory of servers of other versions: executables
// redis-server and valkey-server in it or up to two directories below.
const EnginesVariable = "KVFERRY_ENGINES"

// Engine returns the path of a server of a version, such as "Redis", "8.6". It skips the test if the server is
// missing.
func Engine(t testing.TB, name, version string) string {
	t.Helper()
	dir := os.Getenv(EnginesVariable)
	for _, pattern := range []string{"*-server", "*/*-server", "*/*/*-server"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || dir == "" {
			continue
		}
		for _, path := range paths {
			out, err := exec.Command(path, "--version").Output()
			if err == nil && strings.HasPrefix(string(out), name+" server v="+version+".") {
				return path
			}
		}
	}
	t.Skipf("SKIPPED: needs %s %s; %s names a directory of servers", name, version, EnginesVariable)
	return ""
}

// StartEngine starts the server at a path returned by Engine.
func StartEngine(t testing.TB, path string, args ...string) *Server {
	t.Helper()
	return begin(&Server{binary: path, Dir: t.TempDir(), args: args, t: t})
}
