package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/nemo"
	"kvferry/record"
)

// limitEnv makes such a process apply --memory to its runtime.
const limitEnv = "KVFERRY_TEST_LIMIT"

// With largeMemory, the minimum, rows of largeRow exceed all planned buffers.
const (
	largeMemory = 32 << 20
	largeRow    = 8 << 20
)

// largeValues builds a nemo dataset with large rows of three types. Another seed gives the same keys other values.
func largeValues(t *testing.T, n int, seed byte) string {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{seed})
	value := func() string {
		b := make([]byte, largeRow)
		rnd.Read(b)
		return string(b)
	}
	var records []small
	for _, typ := range []record.Type{record.String, record.Hash, record.List} {
		for i := range n {
			records = append(records, smallRecord(typ, fmt.Sprintf("%s%02d", typ, i), "f="+value()))
		}
	}
	return buildSmall(t, nemo.New(), records...)
}

// largeCommands writes an append-only file of commands.
func largeCommands(t *testing.T, commands ...[]string) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "large.aof")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range commands {
		fmt.Fprintf(f, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(f, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return log
}

// peak runs a command line in its own process and returns its peak resident memory.
func peak(t *testing.T, args ...string) int64 {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"), limitEnv+"=1", "GOGC=") // the default that users have
	// a conversion to a server writes its report there
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if differ := args[0] == "diff" && cmd.ProcessState.ExitCode() == cli.ExitFindings; err != nil && !differ {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	_, last, ok := strings.Cut(string(out), "VmHWM:")
	if !ok {
		t.Skip("the system does not tell the most memory that was resident")
	}
	kib, err := strconv.ParseInt(strings.Fields(last)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// tellPeak prints the peak resident memory of this process, if the system provides it. The usage reported for a child
// process would include its parent's.
func tellPeak() {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			fmt.Println(line)
		}
	}
}

// TestLargeValuesStayWithinMemory checks that workers stay within --memory together even if single rows are large.
func TestLargeValuesStayWithinMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads gigabytes")
	}
	t.Parallel()
	within := limit(t, largeMemory, largeRow)
	src, other, out := largeValues(t, 2, 7), largeValues(t, 2, 8), filepath.Join(t.TempDir(), "out")
	// These merge the stores of the types. All but one of them wait with a row.
	within([]int{1, 4}, "dump", "-q", "-o", out, src)
	within([]int{4}, "dump", "-q", "--format", "resp", "-o", out, src)
	// Every record differs, and its new value is written completely.
	within([]int{1, 4}, "diff", "-q", "--format", "patch", "-o", out, src, other)
	for _, to := range []struct {
		format  string
		workers []int
		read    string // the command that reads the target
	}{{"blackwidow", []int{1, 4}, "inspect"}, {"floyd", []int{2}, "verify"}, {"kvrocks", []int{4}, "fingerprint"},
		{"rdb", []int{1}, "fingerprint"}} {
		for i, workers := range to.workers {
			dst := filepath.Join(t.TempDir(), "dst")
			within([]int{workers}, "convert", "-q", src, to.format+":"+dst)
			if i == 0 { // all workers together write the same bytes
				within([]int{4}, to.read, dst)
			}
			os.RemoveAll(dst)
		}
	}
}

// limit measures the resident memory of the test binary without data, beyond ownMemory. It returns a function that
// runs a command line with several numbers of workers and fails the test if it exceeds --memory and four rows.
func limit(t *testing.T, memory, row int64) func(workers []int, args ...string) {
	t.Helper()
	most := memory + 4*row + max(0, peak(t, "version")-ownMemory)
	return func(workers []int, args ...string) {
		t.Helper()
		for _, n := range workers {
			limits := []string{"--memory", fmt.Sprint(memory), "--workers", fmt.Sprint(n)}
			if args[0] == "patch" { // patch has a single worker
				limits = limits[:2]
			}
			got := peak(t, append(args, limits...)...)
			t.Logf("%s, %d workers: %d MiB of %d", args, n, got>>20, most>>20)
			if got > most {
				t.Errorf("%s, %d workers: %d MiB were resident; --memory and four rows are %d", args, n, got>>20, most>>20)
			}
			if args[0] == "convert" && n != workers[len(workers)-1] {
				_, dst, _ := strings.Cut(args[len(args)-1], ":")
				os.RemoveAll(dst)
				os.Remove(dst + ".kvferry-report.json")
			}
		}
	}
}

// ownMemory is the resident memory of an idle kvferry process.
const ownMemory = 14 << 20

// TestLargeCommandsStayWithinMemory checks the same for large values set by an append-only file, alone and in a
// transaction.
func TestLargeCommandsStayWithinMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads hundreds of megabytes")
	}
	t.Parallel()
	const memory, row = 2 * largeMemory, 2 * largeRow // the store of a replay takes a large part of the minimum
	b := make([]byte, row)
	rand.NewChaCha8([32]byte{9}).Read(b)
	value := string(b)
	log := largeCommands(t, []string{"SELECT", "0"}, []string{"SET", "s", value}, []string{"MULTI"},
		[]string{"HSET", "h", "f", value},
		[]string{"HSET", "h", "g", value}, []string{"EXEC"}, []string{"RPUSH", "l", value}, []string{"RPUSH", "l", value})
	within := limit(t, memory, row)
	for format, workers := range map[string]int{"nemo": 4, "ardb": 1} { // their writers sort rows
		within([]int{workers}, "convert", "-q", "aof:"+log, format+":"+filepath.Join(t.TempDir(), "dst"))
	}
	within([]int{2}, "dump", "-q", "-o", filepath.Join(t.TempDir(), "out"), log)
	several := [][]string{{"SELECT", "0"}}
	for i := range 2 {
		n := strconv.Itoa(i + 1)
		several = append(several, []string{"SET", "s" + n, value}, []string{"HSET", "h", n, value}, []string{"RPUSH", "l", value},
			[]string{"XADD", "x", n, "f", value})
	}
	server, patch := "redis://"+redistest.Start(t).Addr, filepath.Join(t.TempDir(), "patch")
	within([]int{2}, "diff", "-q", "--format", "patch", "-o", patch, "aof:"+log, server)
	within([]int{1}, "patch", patch, server)
	within([]int{4}, "convert", "-q", "--replace", "aof:"+largeCommands(t, several...), server)
	streams := largeCommands(t, []string{"SELECT", "0"}, []string{"XADD", "x", "1-1", "f", value},
		[]string{"XADD", "x", "2-1", "f", value})
	for _, format := range []string{"rdb", "ardb"} {
		within([]int{1}, "convert", "-q", "aof:"+streams, format+":"+filepath.Join(t.TempDir(), "dst"))
	}
}
