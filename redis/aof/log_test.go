package aof

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// tree creates a directory of files; a name that ends in a slash is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// commandsOf encodes commands, one per line.
func commandsOf(lines string) string {
	var out []byte
	for _, line := range strings.Split(lines, "\n") {
		out = redistest.Append(out, strings.Fields(line)...)
	}
	return string(out)
}

// TestFind finds a log by its file, its manifest, or a directory around it, or returns a helpful error.
func TestFind(t *testing.T) {
	const manifest = "file a.1.base.aof seq 1 type b\n"
	log := map[string]string{"d/a.manifest": manifest, "d/a.1.base.aof": "", "d/a.2.incr.aof": "not named"}
	for _, x := range []struct {
		files    map[string]string
		location string
		want     string // = and the files, or a part of the error
		is       error
	}{
		{log, "", "=a.1.base.aof", nil},
		{log, "d", "=a.1.base.aof", nil},
		{log, "d/a.manifest", "=a.1.base.aof", nil},
		{log, "d/a.2.incr.aof", "=a.1.base.aof a.2.incr.aof", nil},
		{map[string]string{"appendonly.aof": "", "x": "", "sub/": ""}, "", "=appendonly.aof", nil},
		{map[string]string{"x": ""}, "", "neither a manifest nor *.aof", ErrNotLog},
		{log, "nowhere", "", fs.ErrNotExist},
		{map[string]string{"a.aof": "", "b.aof": ""}, "", "several append-only files", nil},
		{map[string]string{"a.manifest": manifest, "b.manifest": manifest}, "", "several manifests", nil},
		{map[string]string{"a.manifest": manifest}, "", "a server does not start without it", fs.ErrNotExist},
		{map[string]string{"a.manifest": manifest, "a.1.base.aof/": ""}, "", "not a regular file", nil},
		{map[string]string{"a.manifest": "file"}, "", "a.manifest", nil},
		{map[string]string{"a.manifest/": ""}, "", "", nil},
	} {
		dir := tree(t, x.files)
		l, err := Find(filepath.Join(dir, x.location))
		got := fmt.Sprint(err)
		if err == nil {
			got = "=" + strings.Join(l.Files, " ")
		}
		if !strings.Contains(got, x.want) || x.is != nil && !errors.Is(err, x.is) || (err == nil) != strings.HasPrefix(x.want, "=") {
			t.Errorf("%v, %q: %s, want %s", x.files, x.location, got, x.want)
		}
	}
	large := filepath.Join(tree(t, log), "d", "a.manifest")
	if err := os.Truncate(large, maxManifest+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(large); err == nil || !strings.Contains(err.Error(), "this is not a manifest") {
		t.Error(err)
	}
}

// TestDetect scores the first bytes of a location.
func TestDetect(t *testing.T) {
	log := tree(t, map[string]string{"a.manifest": "file a.1.base.aof seq 1 type b\n", "a.1.base.aof": ""})
	broken := tree(t, map[string]string{"a.manifest": "file\n"})
	for _, x := range []struct {
		ev   format.Evidence
		want int
	}{
		{format.Evidence{Stores: []format.StoreEvidence{{}}, Dir: log}, 0},
		{format.Evidence{Head: []byte("*2\r\n$6\r\nSELECT"), Dir: "x"}, 95},
		{format.Evidence{Head: []byte("REDIS0011\xfa\x08aof-base\xc0\x01"), Dir: "x"}, 105},
		{format.Evidence{Head: []byte("REDIS0009\xfa\x0caof-preamble\xc0\x01"), Dir: "x"}, 105},
		{format.Evidence{Head: []byte("REDIS0011\xfa\x08aof-base\xc0\x00"), Dir: "x"}, 0},
		{format.Evidence{Head: []byte("* a list"), Dir: "x"}, 0},
		{format.Evidence{Head: []byte("#TS:1795896220\r\n*2\r\n$6\r\nSELECT"), Dir: "x"}, 95},
		{format.Evidence{Head: []byte("#TS:1795896220\r\n"), Dir: "x"}, 95},
		{format.Evidence{Head: []byte("# a list"), Dir: "x"}, 0},
		{format.Evidence{Head: []byte("file a.1.base.aof seq"), Dir: filepath.Join(log, "a.manifest")}, 95},
		{format.Evidence{Dir: log}, 95},
		{format.Evidence{Dir: broken}, 50},
		{format.Evidence{Dir: tree(t, map[string]string{"x": ""})}, 0},
	} {
		if got := New().Detect(&x.ev); got.Score != x.want || (got.Score > 0) != (len(got.Why) > 0) {
			t.Errorf("%q in %s: %+v, want %d", x.ev.Head, x.ev.Dir, got, x.want)
		}
	}
	if _, err := WithVersion("99"); err == nil {
		t.Error("a version that there is not")
	}
	if f := New(); f.Name() != Name || f.Limits().Place != format.InFiles || !strings.Contains(f.Limits().Detail, f.Version()) {
		t.Errorf("%+v", f.Limits())
	}
}

// snapshotOf is an RDB file of items; sum is added to its checksum.
func snapshotOf(sum uint64, items ...[]byte) string {
	b := append([]byte("REDIS0011"), bytes.Join(items, nil)...)
	b = rdb.AppendEOF(b)
	return string(binary.LittleEndian.AppendUint64(b, crc64.Update(0, b)+sum))
}

// writtenBy is a log whose base names the server that wrote it.
func writtenBy(server, log string) string {
	name, version, _ := strings.Cut(server, " ")
	return snapshotOf(0, rdb.AppendAux(rdb.AppendAux(nil, name+"-ver", version), "used-mem", "1")) + log
}

// keyOf is a string in an RDB file.
func keyOf(name, value string) []byte {
	b := rdb.AppendKey(nil, 0, []byte(name), 0)
	return append(append(b, byte(len(value))), value...)
}

// TestReplay replays logs: RDB parts, transactions, and the findings about commands that cannot be applied.
func TestReplay(t *testing.T) {
	library := "#!lua name=lib\nx"
	function := append([]byte{0xF5, byte(len(library))}, library...)
	aux := []byte{0xF7, 0x81, 0xa5, 0x46, 0x7e, 0x9c, 0x11, 0x00, 0x00, 0x01, 2, 1, 0} // a module id, when, the end
	dump := string(rdb.AppendDump(nil, 0, rdb.Version{Number: 9}, []byte{8}, []byte("restored")))
	str := func(v string) string { return redistest.Form("string", 0, []string{v}) }
	many := commandsOf("MULTI") + strings.Repeat(commandsOf("SET many "+strings.Repeat("x", 100_000)), 45)
	for name, x := range map[string]struct {
		log     string
		salvage bool
		want    map[string]string
		err     string
		finding string
	}{
		"an RDB part, then commands":   {log: snapshotOf(0, keyOf("a", "1"), function) + commandsOf("SET b 2"), want: map[string]string{"0/a": str("1"), "0/b": str("2")}},
		"data of a module":             {log: snapshotOf(0, aux, keyOf("a", "1")) + commandsOf("SET b 2"), want: map[string]string{"0/a": str("1"), "0/b": str("2")}, finding: FindModuleAux},
		"a key twice":                  {log: snapshotOf(0, keyOf("a", "1"), keyOf("b", "2"), keyOf("a", "3")) + commandsOf("SET c 4"), want: map[string]string{"0/a": str("3"), "0/b": str("2"), "0/c": str("4")}, finding: "duplicate-key"},
		"a wrong checksum":             {log: snapshotOf(1, keyOf("a", "1")) + commandsOf("SET b 2"), err: "checksum"},
		"an RDB part that is cut":      {log: snapshotOf(0, keyOf("a", "1"))[:14], err: "a.aof"},
		"a library that is none":       {log: snapshotOf(0, append([]byte{0xF5, 1}, 'x')) + commandsOf("SET b 2"), err: "library"},
		"a transaction":                {log: commandsOf("MULTI\nSET a 1\nSET b 2\nEXEC"), want: map[string]string{"0/a": str("1"), "0/b": str("2")}},
		"DISCARD, which no log has":    {log: writtenBy("redis 7.0.15", commandsOf("MULTI\nSET a 1\nDISCARD\nSET b 2\nEXEC\nDISCARD")), want: map[string]string{"0/a": str("1"), "0/b": str("2")}, finding: FindRefused},
		"MULTI within another":         {log: writtenBy("redis 7.0.15", commandsOf("MULTI\nSET a 1\nMULTI\nEXEC\nEXEC")), want: map[string]string{"0/a": str("1")}, finding: FindRefused},
		"one that does not end":        {log: commandsOf("SET a 0\nMULTI\nSET a 1"), want: map[string]string{"0/a": str("0")}, finding: FindCut},
		"a large one":                  {log: many + commandsOf("SET many 1\nEXEC"), want: map[string]string{"0/many": str("1")}},
		"a large one without an end":   {log: commandsOf("SET a 0") + many, want: map[string]string{"0/a": str("0")}, finding: FindCut},
		"one that is refused inside":   {log: writtenBy("redis 7.0.15", commandsOf("MULTI\nSET a 1\nLPUSH a x\nEXEC")), want: map[string]string{"0/a": str("1")}, finding: FindRefused},
		"one with a command not known": {log: commandsOf("MULTI\nSET a 1\nMYSTERY a\nEXEC"), err: "MYSTERY"},
		"a command not known":          {log: commandsOf("SET a 1\nMYSTERY a"), err: "offset 27"},
		"passed over":                  {log: commandsOf("SET a 1\nMYSTERY a"), salvage: true, want: map[string]string{}, finding: FindCommand},
		"wrong bytes":                  {log: commandsOf("SET a 1") + "x", err: "a.aof"},
		"wrong bytes passed over":      {log: commandsOf("SET a 1") + "x", salvage: true, want: map[string]string{"0/a": str("1")}, finding: FindDamaged},
		"RESTORE":                      {log: string(redistest.Append(nil, "RESTORE", "r", "0", dump)), want: map[string]string{"0/r": str("restored")}},
		"RESTORE of what is short":     {log: writtenBy("redis 7.0.15", string(redistest.Append(redistest.Append(nil, "RESTORE", "r", "0", "short"), "SET", "a", "1"))), want: map[string]string{"0/a": str("1")}, finding: FindRefused},
		"RESTORE of what is damaged":   {log: writtenBy("redis 7.0.15", string(redistest.Append(redistest.Append(nil, "RESTORE", "r", "0", "\x00\x08Restored"+dump[10:]), "SET", "a", "1"))), want: map[string]string{"0/a": str("1")}, finding: FindRefused},
	} {
		path := filepath.Join(tree(t, map[string]string{"a.aof": x.log}), "a.aof")
		src, found, err := open(t, path, x.salvage)
		if x.err != "" || err != nil {
			if x.err == "" || err == nil || !strings.Contains(err.Error(), x.err) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v, want %s and %s", name, err, x.err, path)
			}
			continue
		}
		for _, d := range redistest.Diff(x.want, contents(t, src, 2), 3) {
			t.Errorf("%s: %s", name, d)
		}
		if (len(found) > 0) != (x.finding != "") ||
			len(found) > 0 && (found[0].Kind != x.finding || strings.Contains(found[0].Detail, "a.aof")) {
			t.Errorf("%s: findings %v", name, found)
		}
		if len(found) > 0 && (found[0].Kind == FindCut || found[0].Kind == FindDamaged) != (found[0].Lost != "" &&
			found[0].Sure != "") {
			t.Errorf("%s: the loss of %v: %q, %q", name, found[0], found[0].Lost, found[0].Sure)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLost: a lost key is a finding with the command's location, and not a record, unless it was overwritten since.
func TestLost(t *testing.T) {
	log := commandsOf("SET a 1\nVADD v VALUES 1 1 e\nVADD w VALUES 1 1 e\nRENAME v u\nDEL w\nEVAL return 0\nEVAL return 1 k\nSET k 1")
	src, found, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s %s %q %s", f.Kind, f.Severity, f.Key,
			f.Place.File+":"+strconv.FormatInt(f.Place.Off, 10)))
	}
	if s := strings.Join(got, "; "); s != `aof-command error "" a.aof:185; aof-command error "" a.aof:218; aof-command error "u" a.aof:27` {
		t.Error(s)
	}
	var ledger record.Ledger
	r, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{},
		&format.Env{Now: time.Now(), Ledger: &ledger})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	redistest.Read(t, have, record.Booked(r, &ledger))
	rows := ledger.Snapshot()["records"]
	if len(have) != 2 || rows.Rows[record.Copied] != 2 || rows.Rows[record.Malformed] != 1 || rows.Check() != nil {
		t.Errorf("%v, rows %+v", have, rows)
	}
}

// TestUnsalvaged: without salvage, a lost key at the end of a log is an error, unless it became exact again.
func TestUnsalvaged(t *testing.T) {
	for log, want := range map[string]string{
		"VADD v VALUES 1 1 e\nDEL v":              "",
		"SET a 1\nVADD v VALUES 1 1 e":            `offset 27: VADD: kvferry does not follow its effect; it leaves the value of key "v" unknown`,
		"VADD v VALUES 1 1 e\nCOPY v w\nCOPY v x": `of key "v" unknown, and that of 2 other keys`,
		"EVAL return 0":                           "any later key may be wrong",
	} {
		src, _, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": commandsOf(log)}), "a.aof"), false)
		var lost *CommandError
		if errors.As(err, &lost) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", log, err)
		}
		if err == nil {
			src.Close()
		}
	}
}

// TestRestoredLoses: what records have no place for is named, of restored values as of those in an RDB part.
func TestRestoredLoses(t *testing.T) {
	// 26: of a stream without entries
	producers := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x64\x40\x64\x01\x01p\x00\x00\x00"
	members := "\x01\x01m\x0a2427235200" // 32: of a set of Dragonfly
	for _, x := range []struct {
		typ     rdb.Type
		value   string
		version int
		kind    string
	}{{26, producers, 12, redis.FindUnreadMeta}, {32, members, 9, redis.FindMemberExpiry}} {
		dump := string(rdb.AppendDump(nil, x.typ, rdb.Version{Number: x.version}, []byte(x.value)))
		log := string(redistest.Append(redistest.Append(nil, "SELECT", "3"), "RESTORE", "r", "0", dump))
		src, found, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof"), false)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Kind != x.kind || found[0].DB != "3" || string(found[0].Key) != "r" ||
			found[0].Severity != record.Warning {
			t.Errorf("type %d: %+v", x.typ, found)
		}
		src.Close()
	}
}

// TestPayloads: FUNCTION RESTORE, and RESTORE under its slot migration name.
func TestPayloads(t *testing.T) {
	dump := string(rdb.AppendDump(nil, 0, rdb.Version{Number: 9}, []byte{8}, []byte("restored")))
	library := func(sum uint64, names ...string) string {
		var b []byte
		for _, name := range names {
			b = rdb.AppendFunction(b, []byte("#!lua name="+name+"\nx"))
		}
		b = append(b, 10, 0)
		return string(binary.LittleEndian.AppendUint64(b, crc64.Update(0, b)+sum))
	}
	restore := func(args ...string) string {
		return string(redistest.Append(nil, append([]string{"FUNCTION", "RESTORE"}, args...)...))
	}
	for name, x := range map[string]struct {
		log     string
		want    string // keys and libraries
		refused bool
	}{
		"asking":          {string(redistest.Append(nil, "RESTORE-ASKING", "r", "0", dump)), "0/r", false},
		"libraries":       {restore(library(0, "b", "a")), "a b", false},
		"there":           {restore(library(0, "a")) + restore(library(0, "b", "a")), "a", true},
		"replaced":        {restore(library(0, "a")) + restore(library(0, "b", "a"), "REPLACE"), "a b", false},
		"flushed":         {restore(library(0, "a")) + restore(library(0, "b"), "flush"), "b", false},
		"one twice":       {restore(library(0, "a", "a")), "", true},
		"wrong checksum":  {restore(library(1, "a")), "", true},
		"an empty one":    {restore(library(0)), "", false},
		"short":           {restore("x"), "", true},
		"other things":    {restore(dump), "", true},
		"more than needs": {restore(library(0, "a"), "APPEND", "REPLACE"), "", true},
	} {
		src, found, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": writtenBy("valkey 9.1.2", x.log)}), "a.aof"),
			false)
		if err != nil {
			t.Fatal(name, err)
		}
		got := slices.Sorted(maps.Keys(contents(t, src, 1)))
		for _, code := range src.(*source).libraries {
			got = append(got, rdb.LibraryName(code))
		}
		if s := strings.Join(got, " "); s != x.want || (len(found) == 1 && found[0].Kind == FindRefused) != x.refused {
			t.Errorf("%s: %s, %v", name, s, found)
		}
		src.Close()
	}
	if _, _, err := crc64.CutFooter(append([]byte(dump[:len(dump)-8]), make([]byte, 8)...), true); err != nil {
		t.Error(err)
	}
}

// TestEarlierFileCut: only the last file of a log may end within a command.
func TestEarlierFileCut(t *testing.T) {
	set := commandsOf("SET a 1")
	dir := tree(t, map[string]string{"a.manifest": "file a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n",
		"a.1.incr.aof": set + set[:9], "a.2.incr.aof": commandsOf("SET b 2")})
	if _, _, err := open(t, dir, false); err == nil || !strings.Contains(err.Error(), "it is not the last file") ||
		!strings.Contains(err.Error(), filepath.Join(dir, "a.1.incr.aof")) {
		t.Error(err)
	}
	src, found, err := open(t, dir, true)
	if err != nil || len(found) != 1 || found[0].Kind != FindDamaged {
		t.Fatal(found, err)
	}
	defer src.Close()
	if got := contents(t, src, 1); len(got) != 1 || got["0/a"] == "" {
		t.Errorf("%v", got)
	}
}

// TestExpired: an expired key is an ordinary row until it is filtered out; a key is expired only after its timestamp.
func TestExpired(t *testing.T) {
	src, _, err := open(
		t,
		filepath.Join(
			tree(
				t, map[string]string{"a.aof": commandsOf(
					"SET a 1\nSET b 2\nPEXPIREAT a 4000000000000\nPEXPIREAT b 4000000000001")}), "a.aof"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for now, want := range map[int64]string{4000000000000: "", 4000000000001: "a", 4000000000002: "ab"} {
		var ledger record.Ledger
		reader, err := src.Records(context.Background(), "0", record.AllTypes, format.Span{},
			&format.Env{Now: time.UnixMilli(now), Ledger: &ledger})
		if err != nil {
			t.Fatal(err)
		}
		expired, r := "", record.Walk(record.Booked(reader, &ledger))
		for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
			if err != nil {
				t.Fatal(err)
			}
			if h.Expired {
				expired += string(h.Key)
			}
		}
		if err := r.Close(); err != nil || expired != want || ledger.Snapshot()["records"].Rows[record.Copied] != 2 {
			t.Errorf("at %d: %q have expired, want %q; %+v, %v", now, expired, want, ledger.Snapshot(), err)
		}
	}
}

// TestSource: functions are records of database 0, which exists just for them if necessary, and belong to one span.
func TestSource(t *testing.T) {
	log := string(redistest.Append([]byte(commandsOf("SELECT 3\nSET a 1\nRPUSH l x y")), "FUNCTION", "LOAD", "#!lua name=lib\nx"))
	src, _, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dbs := fmt.Sprint(src.Databases())
	if dbs != "[0 3]" || src.Types("0") != record.Of(record.Other) ||
		src.Types("3") != record.Of(record.String)|record.Of(record.List) || src.Types("x") != 0 {
		t.Errorf("databases %s, types %v, %v", dbs, src.Types("0"), src.Types("3"))
	}
	if src.Size("3", record.AllTypes) <= src.Size("3", record.Of(record.List)) || src.Size("9", record.AllTypes) != 0 {
		t.Error("sizes")
	}
	for span, want := range map[*format.Span]int{{}: 1, {Hi: []byte("FUNCTION lib")}: 0, {Lo: []byte("FUNCTION lib")}: 1,
		{Lo: []byte("G")}: 0} {
		var ledger record.Ledger
		r, err := src.Records(context.Background(), "0", record.AllTypes, *span, &format.Env{Now: time.Now(), Ledger: &ledger})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		redistest.Read(t, got, record.Booked(r, &ledger))
		rows := ledger.Snapshot()["records"]
		if len(got) != want || rows.Rows[record.Copied] != int64(want) {
			t.Errorf("%+v: %v, rows %+v", span, got, rows)
		}
	}
	if _, err := src.Records(context.Background(), "x", record.AllTypes, format.Span{}, &format.Env{}); err == nil {
		t.Error("database x")
	}
	if n, size := src.(format.Filed).Files(); n != 1 || size != int64(len(log)) {
		t.Errorf("%d files, %d bytes", n, size)
	}
	row := src.Describe("0", rows, nil, nil)
	if row.Err == nil || len(src.Where("0", nil)) != 1 || src.Keyspaces() != nil || src.Extra() != nil || !src.Sorted() ||
		src.Layout() != format.LayoutFlat || src.Format().Name() != Name {
		t.Errorf("%+v", row)
	}
	var done, total int64
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	long := strings.Repeat(commandsOf("SET a 1"), 2*record.CheckEvery)
	for _, text := range []string{long, snapshotOf(0, bytes.Repeat(keyOf("a", "1"), 2*record.CheckEvery)) + long[:27]} {
		if _, err := New().Open(ctx, tree(t, map[string]string{"a.aof": text}),
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(),
				Copied: func(d, n, _, _ int64) { done, total = d, n }}}); !errors.Is(err, context.Canceled) || done <= 0 ||
			done > total || total != int64(len(text)) {
			t.Errorf("cancelled at %d of %d bytes: %v", done, total, err)
		}
	}
}

// TestNow: the times that a log does not have are those of the given clock.
func TestNow(t *testing.T) {
	now := time.UnixMilli(1700000000123)
	log := commandsOf("SET k v EX 100\nXADD x 1-1 f v\nXGROUP CREATE x g 0\nXGROUP CREATECONSUMER x g a\nXCLAIM x g b 0 1-1 FORCE")
	path := filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof")
	src, err := New().Open(context.Background(), path,
		&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Now: now}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	r, err := formattest.Walk(src.Records(context.Background(), "0", src.Types("0"), format.Span{}, &format.Env{Now: now}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	for h, err := r.Next(); err == nil; h, err = r.Next() {
		if string(h.Key) == "k" && h.ExpireMS != now.UnixMilli()+100_000 {
			t.Errorf("k expires at %d", h.ExpireMS)
		}
		for batch, n := make([]record.Element, 8), 0; err == nil; n, err = r.Read(batch) {
			for i := range batch[:n] {
				if batch[i].Kind != record.Consumer {
					continue
				}
				c, err := record.DecodeConsumer(batch[i].Value)
				seen++
				if err != nil || c.SeenMS != now.UnixMilli() {
					t.Errorf("consumer %s was seen at %d, %v", c.Name, c.SeenMS, err)
				}
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d consumers", seen)
	}
}
