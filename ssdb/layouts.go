package ssdb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// keyspace is the only keyspace of a LevelDB directory.
const keyspace = "default"

// family describes the rows of a type: the kinds of its size rows, data rows and index rows.
type family struct {
	typ               record.Type
	size, data, index byte
	layout            *versioned.Layout
}

// families are in dump order. A string is a single row. The last family writes sorted sets whose names are greater than
// ExpireList.
var families = []family{
	{typ: record.String, size: kindString, layout: stringLayout()},
	newFamily(record.Hash, kindHashSize, kindField, 0, hashes(), 0),
	newFamily(record.List, kindQueueSize, kindItem, 0, queues(), 0),
	newFamily(record.ZSet, kindZSetSize, kindScore, kindRank, zsets(), 0),
	newFamily(record.ZSet, kindZSetSize, kindScore, kindRank, zsets(), lanesAbove),
}

// Lanes are written in the order of raw keys: by kind, length of the name, and whether the name is less than, equal to
// or greater than ExpireList, whose rows all shards write together.
const (
	lanesExpiry = 1
	lanesAbove  = 2
)

func laneOf(kind byte, klen int, part uint64) uint64 {
	return uint64(kind)<<16 | uint64(klen)<<2 | part
}

func stringLayout() *versioned.Layout {
	return &versioned.Layout{
		Format: "ssdb", Metas: keyspace, From: []byte{kindString}, To: []byte{kindString + 1}, KeyAt: 1,
		AppendMetaKey: func(dst, key []byte) []byte { return AppendSizeKey(dst, kindString, key) },
		DecodeMetaKey: nameOf(kindString), Sampled: sampled, DeadNote: "its expiry, if it had one, is not known",
		Codecs: []*versioned.Codec{{Type: record.String,
			DecodeMeta: func(m *versioned.Meta, value []byte) error {
				m.Value, m.ExpireMS = value, 0
				return nil
			},
			Plain: func(value []byte) ([]byte, int64, bool) { return value, 0, len(value) < maxPacket },
			Remark: func(m *versioned.Meta) (kind, detail string) {
				if len(m.Value) >= maxPacket {
					return FindLargeValue, dataset.LargeDetail
				}
				return "", ""
			},
			Encoding: versioned.Encoding{Expiry: keepExpiry, Refuse: refuse,
				AppendMeta: func(dst []byte, m *versioned.Meta) []byte { return append(dst, m.Value...) },
				MetaLane:   func(int) uint64 { return laneOf(kindString, 0, 0) }},
		}},
	}
}

// newFamily completes the codec of a collection. part is the last component of its lanes, see laneOf.
func newFamily(t record.Type, size, data, index byte, c *versioned.Codec, part uint64) family {
	c.Type, c.Data, c.DataRows = t, keyspace, rowsOf(data)
	c.DecodeMeta = func(m *versioned.Meta, value []byte) (err error) {
		m.Count, err = DecodeSize(value)
		return err
	}
	c.Check = func(isIndex bool, raw, value []byte) (user []byte, keyErr, valueErr error) {
		kind := data
		if isIndex {
			kind = index
		}
		k, keyErr := DecodeKey(kind, raw)
		if keyErr == nil {
			valueErr = checkValue(kind, &k, value)
		}
		return k.Name, keyErr, valueErr
	}
	if c.Count == nil {
		c.Count = checkSize
	}
	c.Expiry, c.Refuse = keepExpiry, refuse
	c.AppendMeta = func(dst []byte, m *versioned.Meta) []byte { return AppendSize(dst, m.Count) }
	c.MetaLane = func(int) uint64 { return laneOf(size, 0, part) }
	c.DataLane = func(klen int) uint64 { return laneOf(data, klen, part) }
	if index != 0 {
		c.Index, c.IndexRows = keyspace, rowsOf(index)
		c.IndexLane = func(klen int) uint64 { return laneOf(index, klen, part) }
	}
	return family{t, size, data, index, &versioned.Layout{
		Format: "ssdb", Metas: keyspace, From: []byte{size}, To: []byte{size + 1}, Unlisted: true,
		AppendMetaKey: func(dst, key []byte) []byte { return AppendSizeKey(dst, size, key) },
		DecodeMetaKey: nameOf(size), Sampled: sampled,
		Codecs: []*versioned.Codec{c}, Newer: versioned.NewerStale, LenField: nameLen, Orphans: record.Error,
		OwnRecord: func(key []byte) bool { return t == record.ZSet && string(key) == ExpireList },
		DeadNote:  "its elements may have been deleted at different times",
	}}
}

func nameOf(kind byte) func(m *versioned.Meta, raw []byte) error {
	return func(m *versioned.Meta, raw []byte) (err error) {
		m.Key, err = DecodeSizeKey(kind, raw)
		return err
	}
}

// rowsOf describes the raw keys of a kind.
func rowsOf(kind byte) versioned.Rows {
	least, nouns := 0, map[byte]string{kindScore: "row by member", kindRank: "row by score"}
	if kind == kindItem {
		least = -1 // its names may be empty
	}
	return versioned.Rows{Sampled: sampled, Noun: nouns[kind], Lanes: &keylanes.Layout{
		PrefixLen:    prefixLen,
		AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, kind, byte(klen)) },
		Parse:        func(raw []byte) (int, bool) { return int(raw[1]), raw[0] == kind && int(raw[1]) > least },
		MinRest:      map[byte]int{kindField: 1, kindItem: int64Len, kindScore: 1, kindRank: rankLen}[kind],
		From:         []byte{kind},
		To:           []byte{kind + 1},
	}}
}

// sampled returns the name in a raw key, which may be truncated.
func sampled(raw []byte) []byte {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == kindString || raw[0] < 'a': // size rows
		return raw[1:]
	case len(raw) < prefixLen:
		return nil
	}
	return raw[prefixLen:min(prefixLen+int(raw[1]), len(raw))]
}

// checkValue checks the value of a data row.
func checkValue(kind byte, k *Key, value []byte) (err error) {
	switch {
	case kind == kindScore:
		_, err = DecodeScore(value)
	case kind == kindRank:
		err = record.Exact(value, 0, "value", 0)
	case kind == kindItem && k.Num <= seqBack:
		_, err = DecodeSize(value)
	}
	return err
}

// checkSize compares the size row with the rows. The server serves all rows, regardless of the size.
func checkSize(r *versioned.Reader, rows int64) {
	switch n := r.Meta().Count; {
	case n > rows:
		r.CheckCount(rows) // some may be lost
	case n < 0 && rows > 0, n < rows:
		r.Remark(versioned.FindCountMismatch, record.Warning,
			fmt.Sprintf("the size is %s, rows found: %s; the server serves them all", sizeText(n), record.Number(rows)))
	}
}

func sizeText(n int64) string {
	if n == -1 {
		return "missing"
	}
	return fmt.Sprint(n)
}

// large reports a value that SSDB's own tools cannot read.
func large(r *versioned.Reader, e *record.Element, i int) {
	if len(e.Value) >= maxPacket {
		r.RemarkAt(i, FindLargeValue, record.Note, dataset.LargeDetail)
	}
}

func hashes() *versioned.Codec {
	return &versioned.Codec{
		Taken: large,
		Element: func(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
			e.Name, e.Value, e.Score = rest[1:], value, 0
			return 0, rest[0] == equals
		},
		Encoding: versioned.Encoding{
			AppendRow: func(dst, key []byte, _ int64) []byte { return append(appendPrefix(dst, kindField, key), equals) },
		},
	}
}

func zsets() *versioned.Codec {
	return &versioned.Codec{
		Start:   func(m *versioned.Meta) { m.Unsorted, m.Roundings = true, 0 },
		Element: member, Entry: entry, Lone: true, CompareNames: compareMembers,
		Taken: rounded, Count: checkZSet, ScoreBits: math.Float64bits,
		Encoding: versioned.Encoding{Sorts: true, AppendName: appendName,
			AppendRow:      func(dst, key []byte, _ int64) []byte { return appendPrefix(dst, kindScore, key) },
			AppendIndexRow: func(dst, key []byte, _ int64) []byte { return appendPrefix(dst, kindRank, key) },
			AppendScore:    func(dst []byte, score float64) []byte { return AppendScore(dst, wholeScore(score)) },
			AppendBits: func(dst []byte, bits uint64) []byte {
				return appendRank(dst, wholeScore(math.Float64frombits(bits)))
			},
			ExactRank:  exactRank,
			Rank:       func(score float64) (uint64, []byte) { return uint64(wholeScore(score)) ^ 1<<63, nil },
			AppendRank: func(dst []byte, rank uint64, _ []byte) []byte { return appendRank(dst, int64(rank^1<<63)) },
		},
	}
}

// exactRank returns the rank of a score by its text, the Value of a member; false if the member has none.
func exactRank(e *record.Element) (uint64, bool) {
	score, err := DecodeScore(e.Value)
	return uint64(score) ^ 1<<63, err == nil && float64(score) == e.Score
}

func appendName(dst []byte, _ *versioned.Meta, name []byte) ([]byte, error) {
	return appendMember(dst, name), nil
}

// compareMembers is the order of rows by member: their keys have the length before the member.
func compareMembers(a, b []byte) int { return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b)) }

func member(m *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	score, err := DecodeScore(value)
	e.Name, e.Value, e.Score = rest[1:], nil, float64(score)
	if m.Rounded = score > maxExact || score < -maxExact; m.Rounded {
		m.Exact, m.Rounded = score, !isExact(score)
	}
	return 0, err == nil && int(rest[0]) == len(rest)-1
}

// maxExact is the largest number up to which float64s represent every integer.
const maxExact = 1 << 53

func isExact(score int64) bool {
	f := float64(score)
	return f < math.MaxInt64 && int64(f) == score
}

// entry decodes a row by score. The two rows of a member are compared as float64s, since scores are read as such.
func entry(_ *versioned.Meta, rest, value []byte) (_ int64, member []byte, bits uint64, ok bool) {
	score := int64(binary.BigEndian.Uint64(rest[1:]))
	ok = len(value) == 0 && rest[rankLen-1] == equals && (score < 0) == (rest[0] == negative) && (score < 0 || rest[0] == equals)
	return 0, rest[rankLen:], math.Float64bits(float64(score)), ok
}

// rounded reports a score that a float64 cannot represent. A deep pass sums them up: SSDB holds them.
func rounded(r *versioned.Reader, e *record.Element, i int) {
	m := r.Meta()
	switch m.Rounded = m.Rounded && i >= 0 || i < 0 && math.Abs(e.Score) > maxExact; {
	case !m.Rounded || string(m.Key) == ExpireList:
	case r.Env().ExactScores && i >= 0:
		at := len(m.Arena)
		m.Arena = AppendScore(m.Arena, m.Exact)
		e.Value = m.Arena[at:len(m.Arena):len(m.Arena)]
	case r.Env().Deep:
		m.Roundings++
	case i < 0:
		r.Remark(FindScorePrecision, record.Warning,
			fmt.Sprintf("member %s has a score of about %.0f", record.Quote(e.Name), e.Score))
	default:
		r.RemarkAt(i, FindScorePrecision, record.Warning,
			fmt.Sprintf("member %s has score %d, read as %.0f", record.Quote(e.Name), m.Exact, e.Score))
	}
}

func checkZSet(r *versioned.Reader, rows int64) {
	if n := r.Meta().Roundings; n > 0 {
		r.Remarks(n, FindScorePrecision, record.Note,
			fmt.Sprintf("scores beyond 2^53 that a float64 cannot hold: %d; other formats get the nearest one", n))
	}
	checkSize(r, rows)
}

// keepExpiry returns the expiry, which only strings keep: Losses has cleared it in other types.
func keepExpiry(h *record.Header) (int64, error) { return h.ExpireMS, nil }

// refuse returns an error if a record cannot be written: a string without an expiry can have any key.
func refuse(h *record.Header) error {
	if h.Type == record.String && h.ExpireMS == 0 {
		return nil
	}
	if len(h.Key) > MaxName || len(h.Key) == 0 && h.Type != record.List {
		return fmt.Errorf("a name of %s bytes; SSDB's have up to %s", record.Number(len(h.Key)), record.Number(MaxName))
	}
	return nil
}

// Kinds of findings, in addition to package versioned's.
const (
	// FindScorePrecision: a score is an integer that a float64 cannot represent. In a conversion it is a loss of the same
	// name, record.LossScorePrecision.
	FindScorePrecision = "score-precision"
	// FindStaleTTL: expiries of strings that do not exist; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindListBounds: a queue lacks the row of its front or back.
	FindListBounds = "list-bounds"
	// FindLeftBehind: the meta database has state of a cluster or a master, which records cannot hold.
	FindLeftBehind = "left-behind"
	// FindLargeValue: ssdb-dump and replicas cannot read a value. In a conversion it is a note of the same name.
	FindLargeValue = "large-value"
)

// maxScore is the limit of int64 as a float64: 2^63-1 is read as 2^63, and written as 2^63-1 again.
const maxScore = 1 << 63

// wholeScore returns the score to write.
func wholeScore(score float64) int64 {
	if score >= maxScore {
		return math.MaxInt64
	}
	return int64(score)
}
