package command

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/keydbflash"
	"kvferry/kvrocks"
	"kvferry/parquet"
	foreignparquet "kvferry/parquet/foreign"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/aof"
	"kvferry/redis/live"
	"kvferry/ssdb"
	"kvferry/store"
)

// datasetPlant is damage that needs its own dataset.
type datasetPlant struct {
	name, want string
	make       func(t *testing.T) string
}

// leveldbPlants are kinds of damage specific to Ardb on LevelDB.
func leveldbPlants() []datasetPlant {
	const at = int64(1900000000000)
	ttlRow := func(ms int64) []byte {
		return codec.AppendKey(nil, codec.AppendText(nil, []byte("__TTL_DB__")), nil, codec.KindTTL, codec.IntData(ms),
			ardbText("0"), ardbText("t"))
	}
	plant := func(name, want string, do func(r *rows)) datasetPlant {
		return datasetPlant{name, want, func(t *testing.T) string {
			expiring := smallRecord(record.String, "t", "v")
			expiring.expire = at
			dir := buildSmall(t, leveldbFormat{ardb.New()}, append(ardbSet(), expiring)...)
			alter(t, filepath.Join(dir, "leveldb"), do)
			return dir
		}}
	}
	return []datasetPlant{
		plant("nothing", "", func(*rows) {}),
		plant("moved", "note int-namespace", func(r *rows) {
			r.put("default", codec.AppendKey(nil, codec.AppendInt(nil, 1), nk, codec.KindMeta),
				ardbValue(codec.KindString, ardbText("v")))
		}),
		plant("stale", "note stale-ttl-rows", func(r *rows) { r.put("default", ttlRow(at+1), ardbValue(codec.KindTTL)) }),
		plant("not indexed", "note missing-ttl-row", func(r *rows) { r.del("default", ttlRow(at)) }),
	}
}

// eachPage calls f with the pages of an LMDB file and their flags until it returns true.
func eachPage(b []byte, f func(p []byte, flags uint16) bool) []byte {
	const size = 4096
	for at := 2 * size; at+size <= len(b); at += size {
		if p := b[at : at+size]; f(p, binary.LittleEndian.Uint16(p[10:])) {
			return b
		}
	}
	panic("there is no such page")
}

// lmdbPlants are kinds of damage to the server's database on LMDB, which has two notes about its TTL index.
func lmdbPlants() []datasetPlant {
	const leaf, sound = 0x02, "note missing-ttl-row, note stale-ttl-rows"
	plant := func(name, want string, do func([]byte) []byte) datasetPlant {
		return datasetPlant{name, want, func(t *testing.T) string {
			dir := fixtures.Unpack(t, "ardb-lmdb-basic")
			edit("lmdb/data.mdb", do)(t, dir)
			return dir
		}}
	}
	full := func(p []byte, flags uint16) bool { return flags == leaf && binary.LittleEndian.Uint16(p[12:]) > 16+2*8 }
	return []datasetPlant{
		plant("nothing", sound, func(b []byte) []byte { return b }),
		plant("meta page", "warning lmdb-meta-page, "+sound, func(b []byte) []byte {
			older := 0
			if binary.LittleEndian.Uint64(b[4096+16+128:]) < binary.LittleEndian.Uint64(b[16+128:]) {
				older = 4096
			}
			b[older+16] ^= 0xFF
			return b
		}),
		plant("page", "error damaged-page, "+sound, func(b []byte) []byte {
			return eachPage(b, func(p []byte, flags uint16) bool {
				if !full(p, flags) {
					return false
				}
				binary.LittleEndian.PutUint16(p[12:], 0xFFFF) // the lower bound of the page's free space
				return true
			})
		}),
		plant("order", "warning row-order, "+sound, func(b []byte) []byte {
			return eachPage(b, func(p []byte, flags uint16) bool {
				if !full(p, flags) {
					return false
				}
				for i := range 2 { // the second and third rows
					p[18+i], p[20+i] = p[20+i], p[18+i]
				}
				return true
			})
		}),
	}
}

// otherPlants are the other kinds of damage.
func otherPlants() []datasetPlant {
	return []datasetPlant{
		{"MANIFEST cut between edits", "error manifest-behind", cutManifest},
		{"disorder", "error key-order", disordered},
		{"wrapped indexes", "error list-order, warning list-bounds", func(t *testing.T) string {
			dir := buildSmall(t, ardb.New(), ardbSet()...)
			alter(t, filepath.Join(dir, "rocksdb"), func(r *rows) {
				// The comparator computes the differences between the last integer and the others as positive, as
				// they overflow. META hides that the integers are so far apart.
				for i := range int64(3) {
					r.del("0", ardbKey("l", codec.KindElement, codec.IntData(i)))
				}
				for _, i := range []int64{1 << 30, 1 << 40, math.MinInt64 + 5} {
					r.put("0", ardbKey("l", codec.KindElement, codec.IntData(i)), ardbValue(codec.KindElement, ardbText("far")))
				}
				r.meta("l", func(v *codec.Value, _ []codec.Data) []codec.Data {
					v.Size, v.Sequential = 2, false
					return []codec.Data{codec.IntData(1 << 30), codec.IntData(1 << 30)}
				})
			})
			return dir
		}},
	}
}

// disordered returns a dataset with a file that is not in its comparator's order.
func disordered(t *testing.T) string {
	dir := buildSmall(t, blackwidow.New(), smallRecord(record.List, "aa", "x", "y"), smallRecord(record.List, "b", "z"))
	alter(t, filepath.Join(dir, "lists"), func(r *rows) {
		r.order["data_cf"] = store.Comparer{Name: blackwidow.ListsDataKeyComparator.Name, Compare: bytes.Compare}
	})
	return dir
}

// aofPlants are append-only files of a few commands.
func aofPlants() []datasetPlant {
	const set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	plant := func(name, want, log string) datasetPlant {
		return datasetPlant{"append-only file " + name, want, func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), []byte(log), 0o644); err != nil {
				t.Fatal(err)
			}
			return "aof:" + dir
		}}
	}
	return []datasetPlant{
		plant("whole", "", set),
		plant("with distances", "note aof-near", "*4\r\n$4\r\nZADD\r\n$1\r\ng\r\n$16\r\n3479099956230698\r\n$1\r\na\r\n"+
			"*10\r\n$14\r\nGEOSEARCHSTORE\r\n$1\r\nd\r\n$1\r\ng\r\n$10\r\nFROMLONLAT\r\n$2\r\n13\r\n$2\r\n38\r\n$8\r\nBYRADIUS\r\n$3\r\n200\r\n$2\r\nkm\r\n$9\r\nSTOREDIST\r\n"),
		plant("cut", "warning aof-cut", set+set[:20]),
		plant("damaged", "error aof-damaged", set+"nonsense\r\n"+set),
		plant("with a script", "error aof-command", set+"*3\r\n$4\r\nEVAL\r\n$1\r\n0\r\n$1\r\n0\r\n"),
		plant("with a command in vain", "note aof-refused", "REDIS0009\xfa\x09redis-ver\x067.0.15\xff\x00\x00\x00\x00\x00\x00\x00\x00"+set+"*3\r\n$5\r\nLPUSH\r\n$1\r\nk\r\n$1\r\nv\r\n"),
	}
}

func datasetPlants() []datasetPlant {
	return slices.Concat(leveldbPlants(), lmdbPlants(), otherPlants(), rdbPlants(), aofPlants())
}

func TestVerifyPlantedDatasets(t *testing.T) {
	for _, p := range datasetPlants() {
		t.Run(p.name, func(t *testing.T) {
			if got := strings.Join(foundIn(t, p.make(t)), ", "); got != p.want {
				t.Errorf("found %q, want %q", got, p.want)
			}
		})
	}
}

// notPlanted lists the kinds that cannot be planted in files, with the reason.
var notPlanted = map[string]string{
	record.FindLedger:           "a fault of the program; inspect tests it with a source that miscounts",
	record.FindUnreadRows:       "a fault of the machine; inspect tests it with a source that fails",
	floyd.FindSlots:             "TestVerifyOtherSlots",
	record.FindNoFile:           "TestInfoIsAFile",
	ssdb.FindLargeValue:         "values of 128 MiB; TestLargeValues of ssdb",
	record.LossScorePrecision:   "TestDamage of ssdb",
	keydbflash.FindSwapped:      "TestDatabases of keydbflash",
	keydbflash.FindUnclean:      "TestForged of keydbflash",
	parquet.FindUnlisted:        "TestDirectory of parquet",
	parquet.FindIncomplete:      "the same",
	foreignparquet.FindNull:     "TestRows of parquet/foreign",
	foreignparquet.FindConflict: "the same",
	live.FindScanned:            "a server of other rights; TestSourceForbidden of redis/live",
	live.FindFunctions:          "the same",
	live.FindLibraryDiffers:     "a cluster; TestSourceCluster of redis/live",
	live.FindOneNode:            "the same",
	aof.FindEmpty:               "TestEmptyLog",
	aof.FindManifest:            "TestNoManifest of redis/aof",
	record.FindDatasetBeside:    "TestBeside",
	redis.FindHalfImported:      "only files of Valkey have such slots; TestFound of redis reads one",
	aof.FindModuleAux:           "what a server with modules writes; redis/rdb tests the item",
	record.FindRefusedRead:      "a fault of the machine; TestRefusedRead of store/rocks/lsm makes the system refuse",
	record.FindFileBounds:       "rows in the midst of a table, whose ends are right; inspect tests it",
	record.FindUnorderedTable:   "what other commands say where verify says key-order",
	record.FindDamagedBlob:      "TestDamagedBlobs of store/rocks",
	"unreferenced-blobs":        "TestMissingBlobs of store/rocks",
	record.FindFileChecksum:     "TestFileChecksums of store/rocks: a MANIFEST as RocksDB writes it when told to",
	record.FindReplaced:         "what a server does meanwhile; TestReplacedWhileRead",
	record.FindKeyTwice:         "TestArdbRestarts: a database that the server wrote",
}

// kvrocksKinds are planted in memory by tests of the format (TestPlanted, TestSlots).
var kvrocksKinds = []string{kvrocks.FindUnknownFamily, kvrocks.FindBadValue, kvrocks.FindSegment, kvrocks.FindShortSegment,
	kvrocks.FindSlot,
	kvrocks.FindFutureVersion, kvrocks.FindFieldBounds, kvrocks.FindLeftBehind, kvrocks.FindLongBitmap, kvrocks.FindModule,
	kvrocks.FindStreamBounds, kvrocks.FindStreamGroup, kvrocks.FindOldGroups}

// rdbPlants are kinds of damage to RDB files.
func rdbPlants() []datasetPlant {
	plant := func(name, want, body string) datasetPlant {
		return datasetPlant{name, want, func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "dump.rdb")
			err := os.WriteFile(path, []byte("REDIS0013\xfe\x00"+body+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0o644)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}}
	}
	return []datasetPlant{
		plant("sound", "", "\x00\x01k\x01v"),
		plant("damaged value", "error damaged-value", "\x00\x01k\x01v\x0d\x01h\x03bad"),
		plant("key twice", "error duplicate-key", "\x00\x01k\x01v\x00\x01l\x01v\x02\x01k\x01\x01m"),
		plant("member twice", "error damaged-value", "\x02\x01k\x02\x01m\x01m"),
		plant("no number", "warning score-nan", "\x05\x01k\x01\x01m\x00\x00\x00\x00\x00\x00\xf8\x7f"),
		plant("unknown type", "error newer", "\x00\x01k\x01v\x3f\x01l\x01v"),
		plant("members that expire", "warning member-expiry",
			"\x02\x01s\x01\x01m\xfa\x13keydb-subexpire-key\x01m\xfa\x14keydb-subexpire-when\x0d9000000000000"),
		plant("stream length", "warning stream-length", "\x0f\x01x\x00\x05\x01\x00\x00"),
		plant("group ahead", "warning group-ahead", "\x13\x01x\x00\x00\x05\x01\x00\x00\x00\x00\x03\x01\x01g\x05\x01\x04\x00\x00"),
		plant("another file", "error trailing-data", "\x00\x01k\x01v\xff\x00\x00\x00\x00\x00\x00\x00\x00REDIS0013\xfe\x00\x00\x01l\x01v"),
		plant("key metadata", "warning unread-metadata", "\xf3\x01\x00\x00\x00\x00\x00\x00\x01k\x01v"),
	}
}

// notAlone lists kinds that always come with others, and those others.
var notAlone = map[string][]string{
	ardb.FindListOrder: {ardb.FindListBounds},
	"manifest-behind":  {"unknown-row"}, // in the rows of another store
	// The server's database on LMDB has these notes without damage.
	"lmdb-meta-page": {ardb.FindStaleTTL, ardb.FindMissingTTL}, ardb.FindRowOrder: {ardb.FindStaleTTL, ardb.FindMissingTTL},
	record.FindDamagedPage: {ardb.FindStaleTTL, ardb.FindMissingTTL},
}

// TestEveryKindIsPlanted checks each kind of finding on a dataset with only that damage: verify must find it exactly
// once, with the highest severity in the list of kinds.
func TestEveryKindIsPlanted(t *testing.T) {
	var wants []string
	for _, plants := range [][]plant{nemoPlants(), blackwidowPlants(), floydPlants(), ardbPlants()} {
		for _, p := range plants {
			wants = append(wants, p.want)
		}
	}
	for _, p := range filePlants() {
		wants = append(wants, p.want)
	}
	for _, p := range datasetPlants() {
		wants = append(wants, p.want)
	}
	gravest := map[string]record.Severity{}
	severities := map[string]record.Severity{}
	for _, s := range []record.Severity{record.Note, record.Warning, record.Error} {
		severities[s.String()] = s
	}
	for _, want := range wants {
		found := strings.Split(want, ", ")
		for _, f := range found {
			severity, kind, _ := strings.Cut(f, " ")
			alone := !slices.ContainsFunc(found, func(o string) bool {
				_, other, _ := strings.Cut(o, " ")
				return o != f && !slices.Contains(notAlone[kind], other)
			})
			if kind != "" && alone && !strings.Contains(kind, "×") {
				gravest[kind] = max(gravest[kind], severities[severity])
			}
		}
	}
	for _, k := range record.FindingKinds() {
		severity, planted := gravest[k.Kind]
		_, excused := notPlanted[k.Kind]
		excused = excused || slices.Contains(kvrocksKinds, k.Kind)
		switch {
		case planted == excused:
			t.Errorf("%s: planted %v, excused %v", k.Kind, planted, excused)
		case planted && severity != k.Severity:
			t.Errorf("%s: is found as %s, the list says %s", k.Kind, severity, k.Severity)
		}
	}
	for kind := range gravest {
		if _, known := record.FindingKindOf(kind); !known {
			t.Errorf("%s is planted, and not listed", kind)
		}
	}
}
