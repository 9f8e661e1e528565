package command

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExpiredBefore1970 converts keys that expired before 1970, as from an expiry that overflowed 32 bits, to every
// format. They stay expired; a note reports if the target cannot store the time.
func TestExpiredBefore1970(t *testing.T) {
	t.Parallel()
	file := "REDIS0009\xfe\x00"
	for i, ms := range []int64{-2, -1500, -5000, math.MinInt64} {
		expiry := string(binary.LittleEndian.AppendUint64([]byte{252}, uint64(ms)))
		file += expiry + "\x00\x02s" + string(rune('a'+i)) + "\x01v" + expiry + "\x02\x02t" + string(rune('a'+i)) + "\x01\x01m"
	}
	src := filepath.Join(t.TempDir(), "dump.rdb")
	if err := os.WriteFile(src, []byte(file+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	for to, note := range map[string]string{"nemo": "7", "blackwidow": "6", "floyd": "8", "ardb": "8", "ardb+leveldb": "8",
		"kvrocks": "8", "kvrocks2.3": "8", "rdb": "", "aof": ""} {
		dst := filepath.Join(t.TempDir(), "new")
		out := ok(t, "convert", "--expired", "keep", src, to+":"+dst)
		want := "note expiry-ms: " + note + "\n"
		if strings.Contains(out, want) != (note != "") || strings.Contains(out, "expiry-ms") != (note != "") {
			t.Errorf("%s: no %q in\n%s", to, want, out)
		}
		if out := ok(t, "dump", "--expired", "keep", dst); strings.Count(out, "\n") != 8 || strings.Contains(out, `"expire_at_ms":0,`) {
			t.Errorf("%s: not all have expired:\n%s", to, out)
		}
		if out := ok(t, "dump", dst); out != "" {
			t.Errorf("%s: alive: %s", to, out)
		}
	}
}
