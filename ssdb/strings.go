package ssdb

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// secondsBelow: smaller times are seconds, as SSDB 1.6.7 wrote them.
const secondsBelow = 2_000_000_000

// expiryPrefix is the key prefix of the rows by member of ExpireList.
var expiryPrefix = appendPrefix(nil, kindScore, []byte(ExpireList))

// expiryRows describes these rows: in lanes by the length of the string's key.
var expiryRows = keylanes.Layout{
	PrefixLen:    len(expiryPrefix) + 1,
	AppendPrefix: func(dst []byte, klen int) []byte { return append(append(dst, expiryPrefix...), byte(klen)) },
	Parse: func(raw []byte) (int, bool) {
		return int(raw[len(expiryPrefix)]), bytes.HasPrefix(raw, expiryPrefix)
	},
	From: expiryPrefix,
	To:   append(bytes.Clone(expiryPrefix[:len(expiryPrefix)-1]), expiryPrefix[len(expiryPrefix)-1]+1),
}

// timed reads strings with their expiries, and then the rows outside of records. The rows of the expiries are counted
// by the pass that reads sorted sets.
type timed struct {
	record.Reader
	src   *source
	env   *format.Env
	first bool // the pass counts the rows outside of records
	now   int64
	set   *keylanes.Set
	key   []byte // last looked up
	ms    int64
	stale int64 // expiries without a string
	ended bool
}

// timed adds expiries to a reader of strings.
func (s *source) timed(r record.Reader, p *versioned.Pass) (record.Reader, error) {
	span, e := p.Span(), p.Env()
	t := &timed{Reader: r, src: s, env: e, first: span.Lo == nil, now: e.Now.UnixMilli()}
	var err error
	t.set, err = s.expiries.Open(span.Lo, span.Hi, p.Memory(), func(record.Class, []byte, []byte, record.Place) { t.stale++ })
	if err != nil {
		return nil, closing(r, err)
	}
	return t, nil
}

// expiry returns the expiry of a key, or 0.
func (t *timed) expiry(key []byte) (int64, error) {
	if t.key != nil && bytes.Equal(t.key, key) {
		return t.ms, nil
	}
	t.key, t.ms = record.KeepKey(t.key, key), 0
	if err := t.set.Seek(key); err != nil {
		return 0, err
	}
	for {
		rest, value, ok, err := t.set.Next()
		if err != nil || !ok {
			return t.ms, err
		}
		score, bad := DecodeScore(value)
		if len(rest) > 0 {
			bad = record.Exact(rest, 0, "key", 0)
		}
		if bad == nil {
			t.ms = expiryMS(score)
			continue
		}
		t.src.report(t.env, record.Finding{Kind: dataset.ValueKind(bad), Severity: record.Error, Type: record.String, Key: t.key,
			Keyspace: dataDir, Place: t.set.Place(), Detail: fmt.Sprintf("expiry: %v; it is read without one", bad)})
	}
}

// expiryMS returns the time of a score, in milliseconds. Score 0 is long past, not never, and so is one below it.
func expiryMS(score int64) int64 {
	if score < secondsBelow {
		score = max(score, -secondsBelow) * 1000
	}
	score = cmp.Or(score, 1)
	return score
}

// Next returns the next strings.
func (t *timed) Next() (*record.Batch, error) {
	b, err := t.Reader.Next()
	if err != nil {
		return nil, t.end(err)
	}
	for i := range b.Records {
		s := &b.Records[i]
		if s.ExpireMS, err = t.expiry(s.Key); err != nil {
			return nil, err
		}
		s.Expired = s.ExpireMS != 0 && s.ExpireMS <= t.now
	}
	return b, nil
}

// end counts the rows outside of records, once, after the last string.
func (t *timed) end(err error) error {
	if err != io.EOF || t.ended {
		return err
	}
	t.ended = true
	if err := t.set.Finish(); err != nil {
		return err
	}
	if t.stale > 0 {
		t.src.report(t.env, record.Finding{Kind: FindStaleTTL, Severity: record.Note, Keyspace: dataDir,
			Place: record.Place{Level: -1}, Detail: fmt.Sprintf("expiries of strings that do not exist: %d", t.stale)})
	}
	if t.first {
		if err := t.src.countRest(t.env); err != nil {
			return err
		}
	}
	return io.EOF
}

// Close closes both.
func (t *timed) Close() error { return closing(t.Reader, t.set.Close()) }

// holds reports whether a row belongs to the type: the keyspace has the rows of all types.
func (f *family) holds(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == f.size || f.data != 0 && (raw[0] == f.data || raw[0] == f.index))
}
