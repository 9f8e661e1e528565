package live

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/testkit/redistest"
	"kvferry/redis/rdb"
)

// TestSlotMigration: during an atomic slot migration of Valkey 9, the keys of the importing server are not read.
func TestSlotMigration(t *testing.T) {
	nodes := redistest.StartClusterOf(t, redistest.Engine(t, "Valkey", "9.1"), "--cluster-databases", "4",
		"--enable-debug-command", "yes")
	address := "redis+cluster://" + nodes[0].Addr
	list, all := data(100, 2000), map[string]string{}
	for _, db := range []string{"0", "3"} {
		if err := load(context.Background(), mustOpen(t, address, format.ServerOptions{}, db), list, db, 2); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, want(t, list, db))
	}
	from := nodes[0].Client()
	from.Must(t, "DEBUG", "SLOTMIGRATION", "PREVENT-PAUSE", "1")
	from.Must(t, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "4000", "NODE",
		redistest.Text(nodes[1].Client().Must(t, "CLUSTER", "MYID")))
	for i := 0; ; i++ {
		if text := fmt.Sprintf("%q", from.Must(t, "CLUSTER", "GETSLOTMIGRATIONS")); strings.Contains(text, "waiting-to-pause") {
			break
		} else if i == 1000 {
			t.Fatal(text)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, scan := range []bool{false, true} {
		src, found, err := source(t, address, format.ServerOptions{Scan: scan})
		if err != nil || len(found) > 0 {
			t.Fatalf("scan %v: %v, findings %v", scan, err, found)
		}
		diff(t, all, contents(t, src))
	}
}

// TestDropImported removes the list of slots and their keys from the last part only.
func TestDropImported(t *testing.T) {
	version := rdb.Version{Number: 80, Valkey: true}
	key := func(name string) string { return string([]byte{0, byte(len(name))}) + name + "\x01v" }
	slot := func(name string) []byte { return rdb.AppendLen(nil, uint64(keyslot.Of([]byte(name)))) }
	imports := string(append(append([]byte("\xf3\x03job\x01"), slot("a")...), slot("a")...))
	db := string(rdb.AppendDatabase(nil, version, 0, 2, 0))
	for part, want := range map[string]string{
		imports + db + key("a") + key("b") + key("{a}c"): db + key("b"),
		imports + db + key("b"):                          db + key("b"),
		db + key("a"):                                    db + key("a"),
		imports + db + "\x00\x7f":                        imports + db + "\x00\x7f", // damaged
	} {
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer to.f.Close()
		to.newer(rdb.Header{Version: 80, Valkey: true})
		c := copierTo(t, to, nil)
		first := db + key("a")
		if _, err := io.WriteString(to, first); err != nil {
			t.Fatal(err)
		}
		from := to.mark
		if _, err = io.WriteString(to, part); err == nil {
			err = c.dropImported(from)
		}
		if err == nil {
			err = to.w.Flush()
		}
		got := make([]byte, to.n-headLen)
		if _, rerr := to.f.ReadAt(got, headLen); err != nil || rerr != nil || string(got) != first+want {
			t.Errorf("%q: %q, %v, %v", part, got, err, rerr)
		}
	}
}
