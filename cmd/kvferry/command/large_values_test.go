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

	"kvferry/nemo"
	"kvferry/record"
)

// limitEnv makes such a process keep the promise of --memory.
const limitEnv = "KVFERRY_TEST_LIMIT"

// largeRow is larger than any buffer that is planned for.
const largeRow = 16 << 20

// largeValues makes a dataset whose rows are large, of three types.
func largeValues(t *testing.T, n int) string {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{7})
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
	return build(t, nemo.New(), records...)
}

// peak runs a command line in a process of its own and returns the most memory that was resident.
func peak(t *testing.T, args ...string) int64 {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"), limitEnv+"=1", "GOGC=") // garbage as users have it
	out, err := cmd.CombinedOutput()
	if err != nil {
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

// tellPeak prints the most memory that was resident in this process, where the system knows it. What a child's usage
// says has its parent's in it.
func tellPeak() {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmHWM:") {
			fmt.Println(line)
		}
	}
}

// TestLargeValuesStayWithinMemory: workers share the promise of --memory also where single rows are large.
func TestLargeValuesStayWithinMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads gigabytes")
	}
	// The program of the tests is larger than kvferry: it has RocksDB in it, and may count what it covers.
	const memory, most = 64 << 20, 64<<20 + 4*largeRow + 16<<20
	src := largeValues(t, 3)
	within := func(workers int, args ...string) {
		t.Helper()
		holds(t, memory, most, workers, args...)
	}
	// These merge the stores of the types, of which all but one wait with a row.
	out := filepath.Join(t.TempDir(), "out")
	within(4, "dump", "-q", "-o", out, src)
	for _, to := range []struct {
		format  string
		workers []int
		read    string // the command that reads the target
	}{{"blackwidow", []int{1, 4}, "inspect"}, {"floyd", []int{2}, "verify"}, {"kvrocks", []int{4}, "fingerprint"}, {"rdb", []int{1}, "fingerprint"}} {
		for i, workers := range to.workers {
			dst := filepath.Join(t.TempDir(), "dst")
			within(workers, "convert", "-q", src, to.format+":"+dst)
			if i == 0 { // all workers write the same bytes
				within(4, to.read, dst)
			}
			switch to.format {
			case "floyd":
				within(2, "dump", "-q", "--format", "resp", "-o", out, dst)
			case "kvrocks":
				within(1, "diff", "-q", "--format", "patch", "-o", out, src, dst)
			}
			os.RemoveAll(dst)
		}
	}
}

// holds tells when a command takes more memory than it may.
func holds(t *testing.T, memory, most int64, workers int, args ...string) {
	t.Helper()
	got := peak(t, append(args, "--memory", fmt.Sprint(memory), "--workers", fmt.Sprint(workers))...)
	t.Logf("%s, %d workers: %d MiB", args, workers, got>>20)
	if got > most {
		t.Errorf("%s, %d workers: %d MiB were resident; --memory is %d MiB, with four rows and 16 MiB %d", args, workers, got>>20, memory>>20, most>>20)
	}
}

// TestLargeCommandsStayWithinMemory: so do values that a log of commands sets, by themselves and in a transaction.
func TestLargeCommandsStayWithinMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads hundreds of megabytes")
	}
	const memory, row = 64 << 20, 48 << 20
	value := make([]byte, row)
	rand.NewChaCha8([32]byte{8}).Read(value)
	log := filepath.Join(t.TempDir(), "large.aof")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"SELECT 0", "HSET h1 f ", "MULTI", "HSET h2 f ", "EXEC"} {
		words := strings.Split(c, " ")
		fmt.Fprintf(f, "*%d\r\n", len(words))
		for _, w := range words {
			if w == "" {
				w = string(value)
			}
			fmt.Fprintf(f, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	holds(t, memory, memory+4*row+16<<20, 2, "convert", "-q", "aof:"+log, "floyd:"+dst)
}
