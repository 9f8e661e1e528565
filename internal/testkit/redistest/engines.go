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

// Found is a server that was found: "Redis 8.6.3" and where it is.
type Found struct{ Name, Path string }

// Engines returns the servers of other versions that exist.
func Engines() (out []Found) {
	dir := os.Getenv(EnginesVariable)
	for _, pattern := range []string{"*-server", "*/*-server", "*/*/*-server"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || dir == "" {
			continue
		}
		for _, path := range paths {
			if name := Version(path); name != "" {
				out = append(out, Found{name, path})
			}
		}
	}
	return out
}

// Version is the name and version that a server reports: "Redis 8.6.3"; "" when it does not run.
func Version(path string) string {
	out, err := exec.Command(path, "--version").Output()
	f := strings.Fields(string(out)) // Redis server v=8.6.3 …
	if err != nil || len(f) < 3 {
		return ""
	}
	return f[0] + " " + strings.TrimPrefix(f[2], "v=")
}

// Engine returns the path of a server of a version: "Redis", "8.6". It skips the test if there are no other servers.
func Engine(t testing.TB, name, version string) string {
	t.Helper()
	for _, found := range Engines() {
		if strings.HasPrefix(found.Name, name+" "+version+".") {
			return found.Path
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

// DuckDB returns the path of an executable duckdb in the directory of engines or on the PATH, or "".
func DuckDB() string {
	dir := os.Getenv(EnginesVariable)
	for _, pattern := range []string{"duckdb", "*/duckdb", "*/*/duckdb"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range found {
			if st, err := os.Stat(f); dir != "" && err == nil && st.Mode().IsRegular() && st.Mode()&0o100 != 0 {
				return f
			}
		}
	}
	path, err := exec.LookPath("duckdb")
	if err != nil || exec.Command(path, "--version").Run() != nil {
		return ""
	}
	return path
}
