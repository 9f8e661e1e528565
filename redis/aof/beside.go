package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/redis/rdb"
)

// FindEmpty is the kind of the finding that a log is empty, although the dump has records.
const FindEmpty = "aof-empty"

// Default names in the directory of a server.
const (
	dumpName = "dump.rdb"
	logName  = "appendonly.aof"
)

// Beside is the log and the dump of a server. With appendonly yes it loads the log, with appendonly no the dump.
type Beside struct {
	Log    *Log
	At     string   // where the log is: its directory or only file
	Dump   string   // the RDB file, or "" if the log has no dump
	Others []string // further logs, such as backups
	Server bool     // the location is the directory of a server
}

// FindDumpOf returns the log at a location and the dump of its server. A directory may be that of the server, with any dump
// in it, or the one of the log. For files and for the directory of the log, the dump must have its default name.
func FindDumpOf(location string) (*Beside, error) {
	st, err := disk.Stat(location)
	if err != nil {
		return nil, err
	}
	l, err := Find(location)
	if err != nil {
		return nil, err
	}
	b := &Beside{Log: l, At: l.at()}
	if b.Server = st.IsDir() && (!l.parts || l.Dir != disk.Dir(disk.Join(location, dumpName))); b.Server {
		b.Dump = dumpIn(location)
		b.Others, err = b.others(location)
		return b, err
	}
	home := l.Dir
	if l.parts {
		home = disk.Dir(l.Dir)
	}
	if path := disk.Join(home, dumpName); isDump(path) && filepath.Base(l.Dir) != backupDir {
		b.Dump = path
	}
	return b, nil
}

// FindLogOf returns an RDB file and the log of its server, or the log that includes the file.
func FindLogOf(dump string) (*Beside, error) {
	dir, name := disk.Dir(dump), filepath.Base(dump)
	b := &Beside{Dump: dump}
	var err error
	if parsePart(name) != nil {
		b.Log, err = findPart(dir, name)
	} else if dumpIn(dir) == dump {
		b.Log, err = findIn(dir)
	}
	if err != nil || b.Log == nil {
		return nil, err
	}
	at := b.Log.at()
	if parsePart(name) != nil || name == dumpName || slices.Contains([]string{logDir, logName}, filepath.Base(at)) {
		b.At = at
		return b, nil
	}
	return nil, nil
}

// at returns the directory of a log of several parts, or the only file.
func (l *Log) at() string {
	if l.parts {
		return l.Dir
	}
	return disk.Join(l.Dir, l.Files[0])
}

// others lists the logs in the directory of a server that the server does not load.
func (b *Beside) others(home string) ([]string, error) {
	subs, backups, err := logDirs(home)
	out := append(subs, backups...)
	if old, serr := single(home); serr == nil {
		out = append(out, old.at())
	}
	return slices.DeleteFunc(out, func(at string) bool { return at == b.At }), err
}

// dumpIn returns the RDB file of a server's directory: dump.rdb, or the newest file with this ending, or "" without one.
func dumpIn(dir string) (path string) {
	if path := disk.Join(dir, dumpName); isDump(path) {
		return path
	}
	names, err := glob(dir, ".rdb")
	if err != nil {
		return ""
	}
	var newest int64
	for _, name := range names {
		at := disk.Join(dir, name)
		if t := modified(at); parsePart(name) == nil && isDump(at) && (path == "" || t > newest) {
			path, newest = at, t
		}
	}
	return path
}

// isDump reports whether a file begins as an RDB file.
func isDump(path string) bool {
	st, err := disk.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	head, err := readHead(path)
	return err == nil && isSnapshot(head)
}

// modified returns the time when a file was changed, in seconds, or 0 if it is unknown.
func modified(path string) int64 {
	st, err := disk.Stat(path)
	if err != nil {
		return 0
	}
	return st.ModTime().Unix()
}

// LogTime returns the time of the last write: the last annotation (aof-timestamp-enabled), which is exact, or the newest
// time of the files.
func (b *Beside) LogTime() (t time.Time, exact bool) {
	l := b.Log
	var at int64
	for i, name := range l.Files {
		path := disk.Join(l.Dir, name)
		if l.Sizes[i] > 0 || l.Bytes() == 0 {
			at = max(at, modified(path))
		}
		if s := lastStamp(path); s > 0 {
			t, exact = time.Unix(s, 0), true
		}
	}
	if exact {
		return t, true
	}
	return time.Unix(at, 0), false
}

// DumpTime returns the start of the dump: its field ctime, which is exact, or the time of the file. DumpTime ignores a field
// that is later than the file, because the time of such a file was changed.
func (b *Beside) DumpTime() (t time.Time, exact bool) {
	changed := modified(b.Dump)
	if made := created(b.Dump); made > 0 && made <= changed {
		return time.Unix(made, 0), true
	}
	return time.Unix(changed, 0), false
}

// LogOlder reports whether the log ends before the dump began. Exact times are compared with each other, and so are the
// times of files, which a copy may have changed.
func (b *Beside) LogOlder() bool {
	made, exactDump := b.DumpTime()
	last, exactLog := b.LogTime()
	if base := created(disk.Join(b.Log.Dir, b.Log.Files[0])); base >= made.Unix() && exactDump {
		return false
	}
	if exactLog && !exactDump {
		var at int64
		for _, name := range b.Log.Files {
			at = max(at, modified(disk.Join(b.Log.Dir, name)))
		}
		last = time.Unix(at, 0)
	}
	return last.Before(made)
}

// created returns the time in the field ctime of an RDB file or RDB part, in seconds, or 0 without that field.
func created(path string) (seconds int64) {
	_ = withFile(path, func(f *disk.File, size int64) error { // without the field the time is unknown
		_, err := scanDump(f, size, func(it *rdb.Item) bool {
			if it.Op == rdb.OpAux && string(it.Key) == "ctime" {
				seconds, _ = strconv.ParseInt(string(it.Value), 10, 64)
			}
			return it.Op == rdb.OpAux && seconds == 0
		})
		return err
	})
	return seconds
}

// withFile calls do with an open file.
func withFile(path string, do func(f *disk.File, size int64) error) error {
	f, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return do(f, st.Size())
}

// errStopped is the error of scanDump when more returned false.
var errStopped = errors.New("stopped")

// scanDump reads the items of an RDB file or RDB part while more returns true, and returns the offset after it.
func scanDump(f *disk.File, size int64, more func(it *rdb.Item) bool) (int64, error) {
	s, err := rdb.NewScanner(f, 0, size)
	for err == nil {
		var it *rdb.Item
		switch it, err = s.Next(); {
		case err != nil:
		case !more(it):
			err = errStopped
		case it.Op == rdb.OpEOF:
			_, _, err = s.Checksum()
			return s.Offset(), err
		}
	}
	return 0, err
}

// stampTail is the length of the end of a file in which its last annotation is looked up.
const stampTail = 1 << 20

// lastStamp returns the time of the last annotation in the end of a file, in seconds, or 0 without an annotation.
func lastStamp(path string) (seconds int64) {
	_ = withFile(path, func(f *disk.File, size int64) error { // without an annotation the times of files count
		tail := make([]byte, min(size, stampTail))
		_, _, err := disk.ReadAt(f, tail, size-int64(len(tail)))
		for err == nil && seconds == 0 {
			at := bytes.LastIndex(tail, []byte("#TS:"))
			if at < 0 {
				break
			}
			line, rest, ended := bytes.Cut(tail[at:], []byte("\r\n"))
			alone := (at == 0 && size <= stampTail || at > 0 && tail[at-1] == '\n') &&
				(len(rest) == 0 || rest[0] == '*' || rest[0] == '#')
			value := bytes.HasSuffix(tail[:at], fmt.Appendf(nil, "\n$%d\r\n", len(line))) // of a command
			if t, err := strconv.ParseInt(string(line[len("#TS:"):]), 10, 64); alone && ended && !value && err == nil {
				seconds = t
			}
			tail = tail[:at]
		}
		return err
	})
	return seconds
}

// LogEmpty reports whether the log has neither a key nor a command.
func (b *Beside) LogEmpty() bool {
	for _, name := range b.Log.Files {
		if !isEmpty(disk.Join(b.Log.Dir, name)) {
			return false
		}
	}
	return true
}

// DumpEmpty reports whether the dump has no key.
func (b *Beside) DumpEmpty() bool { return isEmpty(b.Dump) }

// isEmpty reports whether an RDB file or a file of commands is without keys and without commands. An incomplete last command
// or transaction does not count. A damaged file is not empty.
func isEmpty(path string) (empty bool) {
	head, err := readHead(path)
	if err != nil {
		return false
	}
	err = withFile(path, func(f *disk.File, size int64) error {
		from := int64(0)
		if isSnapshot(head) {
			from, err = scanDump(f, size, func(it *rdb.Item) bool { return it.Op != rdb.OpKey && it.Op != rdb.OpFunction })
			if err != nil {
				return err
			}
		}
		c := NewCommands(io.NewSectionReader(f, from, size-from), path, from, size)
		var cut *CutError
		multi := false // servers drop a transaction that does not end
		for {
			args, err := c.Next()
			if err != nil {
				empty = errors.Is(err, io.EOF) || errors.As(err, &cut)
				return nil
			}
			switch name := string(bytes.ToUpper(args[0][:min(len(args[0]), 16)])); {
			case name == "MULTI":
				multi = true
			case name != "SELECT" && (!multi || name == "EXEC"):
				return nil
			}
		}
	})
	return empty && err == nil
}
