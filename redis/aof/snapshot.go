package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/state"
)

// snapshot loads the RDB part at the start of a file into the state, including expired keys, and returns the offset of
// the commands.
func (r *replay) snapshot(f *disk.File, size int64) (int64, error) {
	s, err := rdb.NewScanner(f, 0, size)
	if err != nil {
		return 0, r.in(err)
	}
	r.header = s.Header
	d := rdb.Decoder{TempDir: r.tempDir}
	defer d.Close()
	keys := redis.NewTwins(f, twinsMemory, r.tempDir)
	defer keys.Close()
	for n := 1; ; n++ {
		it, err := s.Next()
		if err != nil {
			return 0, r.in(err)
		}
		if n%record.CheckEvery == 0 {
			if err := r.pause(s.Offset()); err != nil {
				return 0, err
			}
		}
		switch it.Op {
		case rdb.OpSlotImport:
			r.server.Import(string(it.Key), it.Slots)
		case rdb.OpAux:
			r.wroteBase(string(it.Key), string(it.Value))
		case rdb.OpKey:
			if err = keys.Add(it); err == nil {
				err = r.key(f, s, it, &d)
			}
		case rdb.OpFunction:
			if err = r.server.LoadFunction(it.Value, true); err != nil {
				err = &record.CorruptError{Off: it.Off, Field: "function library", Err: err}
			} else {
				err = keys.Add(it)
			}
		case rdb.OpOldFunction:
			r.tell(record.FindNewer, record.Error, r.place(it.Off), redis.OldFunctionDetail(it.Key))
		case rdb.OpModuleAux:
			r.tell(FindModuleAux, record.Warning, r.place(it.Off),
				fmt.Sprintf("data of the module %s, which belong to no key, are not read", it.Key))
		case rdb.OpEOF:
			if err := r.twins(f, s, keys, size); err != nil {
				return 0, err
			}
			err = r.checksum(f, s)
			return s.Offset(), r.in(err)
		}
		if err != nil {
			return 0, r.in(err)
		}
	}
}

// wroteBase learns from an AUX field which server wrote the log. A base that kvferry wrote names a server, too, but has no
// used-mem.
func (r *replay) wroteBase(field, value string) {
	switch w, ok := state.ParseWriter(field, value); {
	case ok && ownField(field, value):
		r.claimed = w
	case ok:
		r.server.Writer = w
	case field == "used-mem" && r.claimed != state.Writer{}:
		r.server.Writer = r.claimed
	}
}

// ownField reports whether kvferry writes this AUX field.
func ownField(field, value string) bool {
	return slices.ContainsFunc(rdb.Versions(), func(name string) bool {
		v, err := rdb.ParseVersion(name)
		return err == nil && bytes.Contains(rdb.AppendHead(nil, v, 0), rdb.AppendAux(nil, field, value))
	})
}

// twinsMemory is the memory for the hashes of keys.
const twinsMemory = 2 << 20

// twins reports keys that occur more than once in the RDB part. The state has the last one.
func (r *replay) twins(f *disk.File, s *rdb.Scanner, keys *redis.Twins, size int64) error {
	repeated, err := keys.Repeated(r.ctx, s.Header, s.Offset(), size)
	if err != nil || r.report == nil {
		return err
	}
	in, err := rdb.NewScanner(f, 0, size)
	for err == nil && len(repeated) > 0 {
		var it *rdb.Item
		if it, err = in.Next(); err == nil && it.Off == repeated[0] && (it.Op == rdb.OpKey || it.Op == rdb.OpFunction) {
			repeated = repeated[1:]
			r.tellKey(redis.FindDuplicateKey, s, it, redis.TwiceDetail(it, "last"))
		}
	}
	return err
}

// tellKey reports a finding about an item.
func (r *replay) tellKey(kind string, s *rdb.Scanner, it *rdb.Item, detail string) {
	if r.report != nil {
		severity := record.Error
		if kind == redis.FindMemberExpiry || kind == redis.FindUnreadMeta || kind == redis.FindGroupAhead {
			severity = record.Warning
		}
		r.report(record.Finding{Kind: kind, Severity: severity, DB: strconv.FormatUint(it.DB, 10),
			Type: redis.TypeOf(it, s.Header), Key: bytes.Clone(redis.KeyOf(it)), Place: r.place(it.Off), Detail: detail})
	}
}

// tellOf warns of what a restored value loses.
func (r *replay) tellOf(h *record.Header, kind, detail string) {
	if r.report != nil {
		r.report(record.Finding{Kind: kind, Severity: record.Warning, DB: strconv.Itoa(r.server.DB.Selected()), Type: h.Type,
			Key: bytes.Clone(h.Key), Place: r.place(record.NoOffset), Detail: detail})
	}
}

// FindModuleAux is the kind of the finding about module data outside keys.
const FindModuleAux = "aof-module-aux"

// in adds the name of the file to an error.
func (r *replay) in(err error) error {
	var corrupt *record.CorruptError
	if errors.As(err, &corrupt) && corrupt.File == "" {
		corrupt.Format, corrupt.File = "aof", r.path
	}
	if errors.Is(err, io.EOF) {
		return &record.CorruptError{Format: "aof", File: r.path, Off: record.NoOffset, Err: io.ErrUnexpectedEOF}
	}
	return err
}

// key loads one key into the state. A damaged value keeps the elements before the damage.
func (r *replay) key(f io.ReaderAt, s *rdb.Scanner, it *rdb.Item, d *rdb.Decoder) error {
	h := record.Header{Key: it.Key, ExpireMS: it.ExpireMS}
	if err := d.BeginItem(s.Header, it, f, &h); err != nil {
		return r.damagedValue(s, it, err)
	}
	r.server.DB.Select(int(it.DB))
	put := r.server.DB.Put(&h)
	var ahead []string
	expiring, err := pump(d, put, h.Type != record.Hash, r.server.Now,
		func(elems []record.Element) { ahead = append(ahead, redis.GroupsAhead(&h, elems)...) })
	for _, detail := range ahead {
		r.tellKey(redis.FindGroupAhead, s, it, detail)
	}
	if expiring += d.Unread(); expiring > 0 {
		r.tellKey(redis.FindMemberExpiry, s, it, dataset.MembersDetail(expiring))
	}
	if what := d.Unkept(); what != "" {
		r.tellKey(redis.FindUnreadMeta, s, it, redis.UnkeptDetail(what))
	}
	if it.Meta {
		r.tellKey(redis.FindUnreadMeta, s, it, "metadata that modules keep with the key is not read")
	}
	if err != nil {
		err = r.damagedValue(s, it, err)
	}
	return errors.Join(err, put.End())
}

// damagedValue reports a value that cannot be decoded, or that is inconsistent. Damage aborts the replay unless
// salvaging, because later commands on the key would yield wrong values.
func (r *replay) damagedValue(s *rdb.Scanner, it *rdb.Item, err error) error {
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) || !r.salvage && !rdb.AllRead(err) && !errors.Is(err, rdb.ErrNewer) {
		return err
	}
	r.tellKey(redis.DamageKind(err), s, it, it.Type.Name(s.Header)+": "+corrupt.Reason())
	return nil
}

// pump copies elements to the state, and shows them to see. If members is set, it drops expired ones, and counts and strips
// other expiries.
func pump(d *rdb.Decoder, to *state.Put, members bool, now int64, see func([]record.Element)) (expiring int64, _ error) {
	var batch [record.BatchLen]record.Element
	for {
		n, err := d.Read(batch[:])
		if err == io.EOF {
			return expiring, nil
		}
		if members {
			var some int64
			n, some = dataset.KeepMembers(batch[:n], now)
			expiring += some
		}
		if err == nil {
			see(batch[:n])
			err = to.Write(batch[:n])
		}
		if err != nil {
			return expiring, err
		}
	}
}

// checksum verifies the checksum after the RDB part; 0 means not computed.
func (r *replay) checksum(f io.ReaderAt, s *rdb.Scanner) error {
	end := s.Offset()
	want, ok, err := s.Checksum()
	if err != nil || !ok || want == 0 {
		return err
	}
	var sum uint64
	buf := make([]byte, 256<<10)
	for in := io.NewSectionReader(f, 0, end); ; {
		n, err := in.Read(buf)
		sum = crc64.Update(sum, buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if sum != want {
		return &record.CorruptError{Off: end, Field: "checksum", Err: fmt.Errorf("%016x stored, %016x computed", want, sum)}
	}
	return nil
}

// restore decodes the payload of RESTORE: type, value, footer.
func (r *replay) restore(payload []byte, begin func(*record.Header) *state.Put) error {
	body, version, err := crc64.CutFooter(payload, r.server.Writer.TakesUnsummed())
	if err != nil {
		return err
	}
	r.header.Version = max(r.header.Version, int(version))
	dump, err := rdb.OpenDump(body, version)
	if err != nil {
		return err
	}
	d := rdb.Decoder{TempDir: r.tempDir}
	defer d.Close()
	var h record.Header
	if err := d.Begin(dump.Type, dump.Header, dump.Value, dump.Off, &h); err != nil {
		return err
	}
	expiring, err := pump(&d, begin(&h), h.Type != record.Hash, r.server.Now, func([]record.Element) {})
	if err != nil && !rdb.AllRead(err) {
		return err
	}
	if expiring += d.Unread(); expiring > 0 {
		r.tellOf(&h, redis.FindMemberExpiry, dataset.MembersDetail(expiring))
	}
	if what := d.Unkept(); what != "" {
		r.tellOf(&h, redis.FindUnreadMeta, redis.UnkeptDetail(what))
	}
	return nil // the server accepted it, and repeated elements were dropped
}

// restoreFunctions decodes the payload of FUNCTION RESTORE: library items of an RDB file, footer.
func (r *replay) restoreFunctions(payload []byte) (libraries [][]byte, err error) {
	body, version, err := crc64.CutFooter(payload, r.server.Writer.TakesUnsummed())
	if err != nil {
		return nil, err
	}
	items := rdb.AppendEOF(bytes.Clone(body))
	s := rdb.Section(bytes.NewReader(items), rdb.PayloadHeader(version), 0, 0, int64(len(items)))
	for {
		it, err := s.Next()
		switch {
		case err != nil:
			return nil, err
		case it.Op == rdb.OpEOF && s.Offset() < int64(len(items)):
			return nil, &record.CorruptError{Off: s.Offset(), Field: "payload", Err: record.ErrTrailing}
		case it.Op == rdb.OpEOF:
			return libraries, nil
		case it.Op != rdb.OpFunction:
			return nil, &record.CorruptError{Off: it.Off, Field: "payload", Err: errors.New("holds other things than libraries")}
		}
		libraries = append(libraries, bytes.Clone(it.Value))
	}
}
