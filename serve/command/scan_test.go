package command_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/command/fake"
)

// big is a line of a hash of n fields.
func big(key string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "hash %s", key)
	for i := range n {
		fmt.Fprintf(&b, " f%06d=%d", i, i)
	}
	return b.String()
}

// TestQuick: commands that read little do not wait for those that read large collections.
func TestQuick(t *testing.T) {
	s, _ := fake.New(t, big("h", 10), big("large", 1000), "string a 1")
	c := fake.NewCaller(t, s)
	if err := s.TakeSlow(c.Client); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"GET a": `$"1"`, "HGET h f000003": `$"3"`, "STRLEN a": `:"1"`, "HLEN h": `:"10"`} {
		if got := c.Do(line).String(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Do(over, c.Client, c.W, [][]byte{[]byte("HGETALL"), []byte("large")}); err == nil {
		t.Error("HGETALL does not wait")
	}
	s.GiveSlow(c.Client)
}

// TestElementScans: a scan of a value reads each element once, other scans or not; without its pass it goes on by a seek,
// or by passing the elements again, and returns each element once all the same.
func TestElementScans(t *testing.T) {
	const n = 5000
	for _, tt := range []struct {
		name        string
		seeks, lose bool
		scans, most int // at once; elements read for each
	}{
		{"one", false, false, 1, n + 64}, {"as many as wait", true, false, command.MaxParked, n + 64}, {"lost, sought", true, true, 1, n + 64*(n/command.SmallScan+2)},
		{"lost", false, true, 1, n * (n/command.SmallScan + 3) / 2}, {"too many", true, false, command.MaxParked + 4, n + 128*(n/command.SmallScan+2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, f := fake.New(t, big("h", n))
			f.Seek = tt.seeks
			c := fake.NewCaller(t, s)
			cursors, seen := make([]string, tt.scans), make([]map[string]bool, tt.scans)
			for done := 0; done < tt.scans; {
				for i := range cursors {
					if seen[i] == nil {
						seen[i], cursors[i] = map[string]bool{}, "0"
					} else if cursors[i] == "0" {
						continue
					}
					r := c.Do("HSCAN h " + cursors[i] + " COUNT 100")
					cursors[i] = r.Items[0].Text
					for k := 0; k < len(r.Items[1].Items); k += 2 {
						if name := r.Items[1].Items[k].Text; seen[i][name] {
							t.Fatalf("%s came twice", name)
						} else {
							seen[i][name] = true
						}
					}
					if cursors[i] == "0" {
						done++
					}
					if tt.lose {
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			for i := range seen {
				if len(seen[i]) != n {
					t.Errorf("scan %d: %d fields", i, len(seen[i]))
				}
			}
			if f.Read > tt.most*tt.scans {
				t.Errorf("%d elements read, want up to %d", f.Read, tt.most*tt.scans)
			}
		})
	}
}

// TestLookups: one element is one seek, several are one where they are at the start, and the length is counted once.
func TestLookups(t *testing.T) {
	s, f := fake.New(t, big("h", 9000), "set s a b", "zset z a=1 b=2 c=2", "list l x y z", "string t v")
	r := f.Records["h"]
	f.Records["set"] = &fake.Record{Header: record.Header{Key: []byte("set"), Type: record.Set, ByName: true}, Elems: r.Elems}
	f.Records["zset"] = &fake.Record{Header: record.Header{Key: []byte("zset"), Type: record.ZSet, ByName: true}, Elems: r.Elems}
	f.Records["list"] = &fake.Record{Header: record.Header{Key: []byte("list"), Type: record.List}, Elems: r.Elems}
	for _, seeks := range []bool{true, false} {
		f.Seek = seeks
		c := fake.NewCaller(t, s)
		for _, x := range []struct {
			line, want string
			most       int // elements read with seeks
		}{
			{"HGET h f008000", `$"8000"`, 1}, {"HGET h none", `$"-1"`, 0}, {"HGET none f", `$"-1"`, 0}, {"HGET set f", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`, 0},
			{"HEXISTS h f000001", `:"1"`, 1}, {"HSTRLEN h f000100", `:"3"`, 1}, {"HSTRLEN h none", `:"0"`, 0},
			{"HMGET h f008000 none f000001 f008000", `*4[$"8000" $"-1" $"1" $"8000"]`, 400}, {"HTTL h FIELDS 2 f007000 none", `*2[:"-1" :"-2"]`, 300},
			{"SISMEMBER set f007000", `:"1"`, 1}, {"SMISMEMBER set f000000 x f008999", `*3[:"1" :"0" :"1"]`, 300}, {"SISMEMBER set x", `:"0"`, 0},
			{"ZSCORE zset f000700", `$"0"`, 1}, {"ZMSCORE zset f000700 x", `*2[$"0" $"-1"]`, 300},
			{"LINDEX list 8000", `$"8000"`, 1}, {"LRANGE list 8000 8001", `*2[$"8000" $"8001"]`, 64}, {"LRANGE list 9 8", `*"0"`, 64},
			{"LLEN list", `:"9000"`, 9000}, {"LINDEX list -1", `$"8999"`, 1}, {"LRANGE list -2 -1", `*2[$"8998" $"8999"]`, 64}, {"LLEN list", `:"9000"`, 0},
			{"ZLEXCOUNT zset [f008990 [f008999", `:"10"`, 64}, {"ZLEXCOUNT zset - (f000002", `:"2"`, 64},
			{"ZRANGEBYLEX zset (f000004 [f000006", `*2[$"f000005" $"f000006"]`, 64}, {"ZRANGE zset [f000006 [f000005 BYLEX REV LIMIT 1 1", `*1[$"f000005"]`, 64},
			{"ZREVRANGEBYLEX zset - +", `*"0"`, 64},
		} {
			f.Read = 0
			if got := c.Do(x.line).String(); got != x.want || seeks && f.Read > x.most {
				t.Errorf("%s: %s, %d elements read, want %s, %d", x.line, got, f.Read, x.want, x.most)
			}
		}
	}
}
