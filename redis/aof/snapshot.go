package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"kvferry/internal/shared/dataset"
	"strconv"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/state"
)

// snapshot puts the RDB part at the front of a file into the state, with keys that have expired, and returns where the
// commands begin.
func (r *replay) snapshot(f *disk.File, size int64) (int64, error) {
	s, err := rdb.NewScanner(f, 0, size)
	if err != nil {
		return 0, r.in(err)
	}
	d := rdb.Decoder{TempDir: r.tempDir}
	defer d.Close()
	keys := redis.NewTwins(f, twinsMemory, r.tempDir)
	defer keys.Close()
	for n := 1; ; n++ {
		it, err := s.Next()
		if err != nil {
			return 0, r.in(err)
		}
		if n%checkEvery == 0 {
			if err := r.pause(s.Offset()); err != nil {
				return 0, err
			}
		}
		switch it.Op {
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
			r.tell(FindModuleAux, record.Warning, r.place(it.Off), fmt.Sprintf("data of the module %s, which belong to no key, are not read", it.Key))
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

// twinsMemory is what the hashes of keys take of the memory.
const twinsMemory = 2 << 20

// twins reports keys that the RDB part has more than once. The last of them is in the state.
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

// tellKey reports an error of an item.
func (r *replay) tellKey(kind string, s *rdb.Scanner, it *rdb.Item, detail string) {
	if r.report != nil {
		severity := record.Error
		if kind == redis.FindMemberExpiry || kind == redis.FindUnreadMeta {
			severity = record.Warning
		}
		r.report(record.Finding{Kind: kind, Severity: severity, DB: strconv.FormatUint(it.DB, 10),
			Type: redis.TypeOf(it, s.Header), Key: bytes.Clone(redis.KeyOf(it)), Place: r.place(it.Off), Detail: detail})
	}
}

// FindModuleAux is the kind of finding of what a module has beside its keys.
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

// key puts one key into the state. Of a value that cannot be decoded it is what comes before that.
func (r *replay) key(f io.ReaderAt, s *rdb.Scanner, it *rdb.Item, d *rdb.Decoder) error {
	h := record.Header{Key: it.Key, ExpireMS: it.ExpireMS}
	if err := d.BeginItem(s.Header, it, f, &h); err != nil {
		return r.damagedValue(s, it, err)
	}
	r.server.DB.Select(int(it.DB))
	put := r.server.DB.Put(&h)
	expiring, err := pump(d, put, h.Type != record.Hash, r.server.Now)
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

// damagedValue reports a value that cannot be decoded, or all of which was and is wrong. Damage stops the replay unless it is
// salvaged: what commands do later to the key is then wrong, too.
func (r *replay) damagedValue(s *rdb.Scanner, it *rdb.Item, err error) error {
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) || !r.salvage && !rdb.AllRead(err) && !errors.Is(err, rdb.ErrNewer) {
		return err
	}
	r.tellKey(redis.DamageKind(err), s, it, it.Type.Name(s.Header)+": "+corrupt.Reason())
	return nil
}

// pump moves elements. Members that expire and have no place for that are counted; those that have expired are left out.
func pump(d *rdb.Decoder, to *state.Put, members bool, now int64) (expiring int64, _ error) {
	var batch [64]record.Element
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
			err = to.Write(batch[:n])
		}
		if err != nil {
			return expiring, err
		}
	}
}

// checksum compares the checksum behind the RDB part with its bytes. 0 is none.
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
	body, version, err := crc64.CutFooter(payload, false)
	if err != nil {
		return err
	}
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
	if _, err := pump(&d, begin(&h), h.Type != record.Hash, r.server.Now); !rdb.AllRead(err) {
		return err
	}
	return nil // the server took it, and each is there once
}

// restoreFunctions decodes the payload of FUNCTION RESTORE: the items of an RDB file that are libraries, footer.
func restoreFunctions(payload []byte) (libraries [][]byte, err error) {
	body, version, err := crc64.CutFooter(payload, false)
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
