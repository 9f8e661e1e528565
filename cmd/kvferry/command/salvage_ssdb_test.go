package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"

	"kvferry/cmd/kvferry/cli"
	"kvferry/ssdb"
)

// TestSalvageSSDB damages a directory that the server wrote, with tables and a log: the commands agree, and convert copies
// what is left once the damage is allowed.
func TestSalvageSSDB(t *testing.T) {
	t.Parallel()
	truth := dumped(t, ok(t, "dump", "--expired", "keep", golden(t, "ssdb-basic")))
	for _, d := range []struct {
		name, file string
		do         func(path string, data []byte) error
		whole      bool // no record is lost
	}{
		{"a damaged MANIFEST", "MANIFEST-*", flipped(0.95), true},
		{"no MANIFEST", "MANIFEST-*", func(path string, _ []byte) error { return os.Remove(path) }, true},
		{"no CURRENT", "CURRENT", func(path string, _ []byte) error { return os.Remove(path) }, true},
		{"a missing table", "*.ldb", func(path string, _ []byte) error { return os.Remove(path) }, false},
		{"a cut table", "*.ldb", func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }, false},
		{"a damaged log", "*.log", flipped(0.5), false},
	} {
		t.Run(d.name, func(t *testing.T) {
			root := fastDir(t)
			dir := placed(t, root, "ssdb-basic", "damaged")
			files, err := filepath.Glob(filepath.Join(dir, "var", "data", d.file))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			data, err := os.ReadFile(files[0])
			if err == nil {
				err = d.do(files[0], data)
			}
			if err != nil {
				t.Fatal(err)
			}
			unchanged(t, dir)
			src := "ssdb:" + dir
			if r := kvferry(t, "verify", src); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "error ") {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := kvferry(t, "dump", src); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "--salvage") {
				t.Errorf("dump: exit %d: %s", r.code, r.stderr)
			}
			left := kvferry(t, "dump", "--expired", "keep", "--salvage", src)
			if left.code != cli.ExitFindings {
				t.Errorf("dump --salvage: exit %d: %s", left.code, left.stderr)
			}
			lost := wantPart(t, dumped(t, left.stdout), truth)
			if (lost == 0) != d.whole {
				t.Errorf("%d elements are lost", lost)
			}
			for _, dst := range []string{"ssdb", "kvrocks"} {
				to := filepath.Join(root, dst)
				args := []string{"convert", "--expired", "keep", "--on-conflict", "rename", src, dst + ":" + to, "--allow-loss", "score-precision,empty-key,name-length,key-too-long"}
				if r := kvferry(t, args...); r.code != cli.ExitLossy || !strings.Contains(r.stderr, "damaged") {
					t.Errorf("convert to %s: exit %d: %s", dst, r.code, r.stderr)
				}
				args[len(args)-1] += ",damaged"
				ok(t, args...)
				if rep := reportOf(t, to); !rep.Proof.Done {
					t.Error("there is no proof")
				}
				ok(t, "verify", dst+":"+to)
			}
		})
	}
}

// TestForgedSSDB: each row that no server writes makes all commands report it, refuse a conversion, and keep its
// neighbours once it is allowed; what SSDB leaves behind by itself is a note.
func TestForgedSSDB(t *testing.T) {
	t.Parallel()
	list := []byte(ssdb.ExpireList)
	for _, c := range []struct {
		name       string
		key, value []byte
		kind       string // of the error; "": a note or a warning
		loss       string
	}{
		{"an unknown kind", []byte("x"), nil, "newer", "newer"},
		{"a kind below all", []byte{0}, nil, "newer", "newer"},
		{"a binlog of another version", []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x09"), ssdb.AppendLog(nil, &ssdb.Log{Seq: 9, Type: 9}), "newer", "newer"},
		{"a binlog cut off", []byte("\x01\x00\x00"), []byte("x"), "short-value", "damaged"},
		{"a size of 9 bytes", []byte("Hk"), make([]byte, 9), "newer", "newer"},
		{"a size too large", []byte("Hk"), ssdb.AppendSize(nil, 9), "count-mismatch", "damaged"},
		{"a size without elements", []byte("Hnone"), ssdb.AppendSize(nil, 1), "count-mismatch", "damaged"},
		{"a score that is no number", []byte("s\x01z\x01m"), []byte("1.5"), "bad-value", "damaged"},
		{"a score that differs", ssdb.AppendScoreKey(nil, []byte("z"), []byte("m")), []byte("8"), "zset-score-mismatch", "damaged"},
		{"a member longer than its length", []byte("s\x01z\x01mm"), []byte("1"), "newer", "newer"},
		{"a name longer than the key", []byte("h\x99k=f"), nil, "bad-key-length", "damaged"},
		{"an item outside of the queue", ssdb.AppendItemKey(nil, []byte("q"), ssdb.FirstItem+5), nil, "", ""},
		{"a number of no item", ssdb.AppendItemKey(nil, []byte("q"), 7), nil, "newer", "newer"},
		{"a front of 7 bytes", ssdb.AppendItemKey(nil, []byte("q"), 2), make([]byte, 7), "short-value", "damaged"},
		{"a time that is no number", ssdb.AppendScoreKey(nil, list, []byte("s")), []byte("soon"), "bad-value", "damaged"},
		{"a size too small", []byte("Hk"), ssdb.AppendSize(nil, 0), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			db, err := leveldb.OpenFile(filepath.Join(root, "ssdb", "data"), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range [][2][]byte{
				{[]byte("ks"), []byte("v")}, {[]byte("Hk"), ssdb.AppendSize(nil, 1)}, {ssdb.AppendFieldKey(nil, []byte("k"), []byte("f")), []byte("v")},
				{[]byte("Zz"), ssdb.AppendSize(nil, 1)}, {ssdb.AppendScoreKey(nil, []byte("z"), []byte("m")), []byte("7")}, {ssdb.AppendRankKey(nil, []byte("z"), 7, []byte("m")), nil},
				{[]byte("Qq"), ssdb.AppendSize(nil, 1)}, {ssdb.AppendItemKey(nil, []byte("q"), 2), ssdb.AppendSize(nil, ssdb.FirstItem)},
				{ssdb.AppendItemKey(nil, []byte("q"), 3), ssdb.AppendSize(nil, ssdb.FirstItem)}, {ssdb.AppendItemKey(nil, []byte("q"), ssdb.FirstItem), []byte("i")},
				{c.key, c.value},
			} {
				if err := db.Put(row[0], row[1], nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			src := "ssdb:" + filepath.Join(root, "ssdb")
			want, refused := cli.ExitFindings, cli.ExitLossy
			if c.kind == "" {
				want, refused = cli.ExitOK, cli.ExitOK
			}
			if r := kvferry(t, "verify", "--fail-on", "error", src); r.code != want ||
				c.kind != "" && !strings.Contains(r.stdout, "error "+c.kind+" ") {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			for _, args := range [][]string{{"dump", src}, {"inspect", src}, {"fingerprint", src}, {"diff", src, src}} {
				if r := kvferry(t, args...); r.code != want || c.kind != "" && !strings.Contains(r.stderr, c.kind) {
					t.Errorf("%s: exit %d: %s", args[0], r.code, r.stderr)
				}
			}
			args := []string{"convert", src, "kvrocks:" + filepath.Join(root, "kvrocks")}
			if r := kvferry(t, args...); r.code != refused || !strings.Contains(r.stderr, c.loss) {
				t.Errorf("convert: exit %d: %s", r.code, r.stderr)
			}
			if c.kind != "" {
				ok(t, append(args, "--allow-loss", "damaged,newer")...)
			}
			got := ok(t, "dump", "kvrocks:"+filepath.Join(root, "kvrocks"))
			if strings.Count(got, "\n") < 3 || !strings.Contains(got, `"type":"hash","key":"k"`) {
				t.Errorf("the target has\n%s", got)
			}
		})
	}
}
