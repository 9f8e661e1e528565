package codec

import (
	"encoding/binary"
	"math"
	"strings"

	"kvferry/internal/shared/keylanes"
	"kvferry/store"
)

// Space builds the raw keys of a namespace.
type Space struct {
	Namespace []byte
	Slotted   bool // keys have the slot of a cluster
}

// Prefix returns the prefix of all keys of the namespace, and the first key after them all, nil if none can exist.
func (s Space) Prefix() (prefix, upper []byte) {
	prefix = AppendNamespace(nil, string(s.Namespace))
	upper, _ = store.Successor(prefix)
	return prefix, upper
}

// slotOf returns the slot in the rows of a key, or NoSlot.
func (s Space) slotOf(key []byte) int {
	if !s.Slotted {
		return NoSlot
	}
	return Slot(key)
}

// AppendMetaKey appends the key of a user key's metadata row.
func (s Space) AppendMetaKey(dst, key []byte) []byte {
	return AppendMetaKey(dst, MetaKey{Namespace: s.Namespace, Slot: s.slotOf(key), Key: key})
}

// AppendBelow appends the key prefix of the rows below a user key's metadata row.
func (s Space) AppendBelow(dst, key []byte) []byte {
	dst = AppendHome(dst, s.Namespace, s.slotOf(key))
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(key))), key...)
}

// AppendVersion appends the key prefix of such rows of one version.
func (s Space) AppendVersion(dst, key []byte, version int64) []byte {
	return binary.BigEndian.AppendUint64(s.AppendBelow(dst, key), uint64(version))
}

// Below returns the raw range of the rows below a user key's metadata row.
func (s Space) Below(key []byte) (lo, hi []byte) {
	lo = s.AppendBelow(nil, key)
	hi, _ = store.Successor(lo)
	return lo, hi
}

// Lanes describes the keys of rows below metadata without slots. Their lanes are the namespace and the bytes of klen.
func (s Space) Lanes() *keylanes.Layout {
	prefix, upper := s.Prefix()
	at := len(prefix)
	return &keylanes.Layout{
		PrefixLen: at + KlenLen,
		AppendPrefix: func(dst []byte, klen int) []byte {
			return binary.BigEndian.AppendUint32(append(dst, prefix...), uint32(klen))
		},
		Parse: func(raw []byte) (int, bool) {
			klen := binary.BigEndian.Uint32(raw[at:])
			return int(klen), klen <= math.MaxInt32
		},
		MinRest: VersionLen,
		From:    prefix,
		To:      upper,
	}
}

// Sampled returns a function that returns the user key in the key of a metadata row, or of a row below it. Both may be
// truncated: samples come from the indexes of tables.
func (s Space) Sampled(below bool) func(raw []byte) []byte {
	at := NslenLen + len(s.Namespace)
	if s.Slotted {
		at += SlotLen
	}
	return func(raw []byte) []byte {
		rest := raw[min(len(raw), at):]
		if !below {
			return rest
		}
		if len(rest) < KlenLen {
			return nil
		}
		klen := int64(binary.BigEndian.Uint32(rest))
		return rest[KlenLen:min(KlenLen+klen, int64(len(rest)))]
	}
}

// LeftBehind describes a row of a column family without records, or returns "" if the server recreates the row. known
// is false for a row of an unknown kind.
func LeftBehind(family string, key []byte) (what string, known bool) {
	switch family {
	case FamilySearch:
		return "rows of search indexes (create them again with FT.CREATE)", true
	case FamilyIndex:
		return "labels of time series in the index (commands that search by label find only series that are created again)", true
	case FamilyPropagate:
		for _, x := range propagated {
			if rest, ok := strings.CutPrefix(string(key), x.key); ok && (x.prefix || rest == "") {
				return x.what, true
			}
		}
		return "", false
	}
	return "", true
}

// propagated are the rows of the column family propagate.
var propagated = []struct {
	key    string
	prefix bool
	what   string // "" if the server recreates it
}{
	{"__namespace_keys__", false, "namespace tokens (add them again with NAMESPACE ADD)"},
	{"lua_f_", true, "scripts (load them again with SCRIPT LOAD)"},
	{"lua_lib_code_", true, "function libraries (load them again with FUNCTION LOAD)"},
	{"lua_func_lib_", true, ""},
	{"replication_id_", false, ""},
	{"script", false, ""},
}
