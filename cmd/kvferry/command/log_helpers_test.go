package command

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/record"

	"kvferry/ardb/codec"
)

// logNumber exceeds the numbers of all files that tests create.
const logNumber = 900

// writes is one batch of a log: writes to a column family after its tables.
type writes struct {
	cf    uint64 // 0: the default
	seq   uint64
	count uint32
	body  []byte
}

// Kinds of entries in a batch, for the default column family and for others.
var batchKinds = map[string][2]byte{"delete": {0x00, 0x04}, "put": {0x01, 0x05}, "merge": {0x02, 0x06},
	"range delete": {0x0F, 0x0E}}

func (w *writes) add(kind string, args ...[]byte) *writes {
	w.count++
	if w.cf == 0 {
		w.body = append(w.body, batchKinds[kind][0])
	} else {
		w.body = binary.AppendUvarint(append(w.body, batchKinds[kind][1]), w.cf)
	}
	for _, b := range args {
		w.body = append(binary.AppendUvarint(w.body, uint64(len(b))), b...)
	}
	return w
}

func (w *writes) bytes() []byte {
	out := binary.LittleEndian.AppendUint64(nil, w.seq)
	return append(binary.LittleEndian.AppendUint32(out, w.count), w.body...)
}

// appendLog adds a log with writes to a finished store.
func appendLog(t testing.TB, dir string, batches ...*writes) string {
	t.Helper()
	var out bytes.Buffer
	w := record.NewWriter(&out)
	for _, b := range batches {
		if _, err := w.WriteRecord(b.bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%06d.log", logNumber))
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Shorthands for Ardb's rows in the only namespace of a dataset built on RocksDB.
const ardbCF = 1

func ardbKey(user string, k codec.Kind, elems ...codec.Data) []byte {
	return codec.AppendKey(nil, nil, []byte(user), k, elems...)
}

func ardbText(s string) codec.Data { return codec.TextData([]byte(s)) }

func ardbValue(k codec.Kind, data ...codec.Data) []byte {
	return codec.AppendValue(nil, &codec.Value{Kind: k}, data...)
}
