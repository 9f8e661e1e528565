package aof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/state"
	"kvferry/redis/state/commands"
	"kvferry/store"
)

// Kinds of findings.
const (
	FindCommand = "aof-command" // a key of unknown value, or a command that may have changed any key
	FindNear    = "aof-near"    // a result that may differ from the server's, such as in the last bits of a number
	FindCut     = "aof-cut"     // an incomplete last command, or a MULTI without EXEC
	FindDamaged = "aof-damaged" // invalid bytes, and the rest of the log is not read
	FindRefused = "aof-refused" // commands that the log's server answers with an error and skips
)

// CommandError means that a command's effect is unknown.
type CommandError struct {
	File string
	Off  int64
	Why  string
	Key  []byte // key of unknown value at the end of the log; nil: any key may be wrong
	Keys int64  // number of such keys
}

// Error names the command and its location.
func (e *CommandError) Error() string {
	what := "without it any later key may be wrong"
	switch {
	case e.Keys > 1:
		what = fmt.Sprintf("it leaves the value of key %s unknown, and that of %s", record.Quote(e.Key), record.Count(e.Keys-1, "other key"))
	case e.Keys == 1:
		what = fmt.Sprintf("it leaves the value of key %s unknown", record.Quote(e.Key))
	}
	return fmt.Sprintf("%s: offset %d: %s; %s", e.File, e.Off, e.Why, what)
}

// replay applies a log to a server.
type replay struct {
	ctx     context.Context
	log     *Log
	server  *state.Server
	salvage bool // continue after commands that cannot be applied
	report  func(record.Finding)

	keepHalf bool  // keys of slots whose import has not ended are records
	half     int64 // the number of such keys if they are not
	tempDir  string
	copied   store.Copied  // may be nil
	sources  *disk.Sources // opens the files; may be nil
	before   int64         // bytes of the previous files

	path    string // of the file, for errors
	file    string // its name in the log, for findings
	last    bool   // the last of the files
	queue   *queue
	claimed state.Writer // that the base names
	header  rdb.Header   // of the newest RDB part
	refused tally
	near    tally
}

// tally counts commands that share one finding.
type tally struct {
	n     int64
	first string // description of the first
	where record.Place
}

func (t *tally) add(first string, where record.Place) {
	if t.n++; t.n == 1 {
		t.first, t.where = first, where
	}
}

// all applies all files.
func (r *replay) all() error {
	for i, name := range r.log.Files {
		r.path, r.file, r.last = disk.Join(r.log.Dir, name), name, i == len(r.log.Files)-1
		more, err := r.one(r.path, r.log.Sizes[i])
		if err != nil {
			return err
		}
		if !more {
			break
		}
		r.before += r.log.Sizes[i]
	}
	if t := &r.refused; t.n > 0 {
		r.tell(FindRefused, record.Note, t.where, fmt.Sprintf(
			"%s refused, as %s does when it loads the log: %s", record.Count(t.n, "command"), r.server.Writer, t.first))
	}
	if t := &r.near; t.n > 0 {
		r.tell(FindNear, record.Note, t.where, fmt.Sprintf("%s with a result that may differ from the server's: %s",
			record.Count(t.n, "command"), t.first))
	}
	r.importHalf()
	return r.lost()
}

// importHalf reports the keys of slots whose import has not ended with the log.
func (r *replay) importHalf() {
	if len(r.server.Imports) == 0 {
		return
	}
	var slots keyslot.Ranges
	for _, some := range r.server.Imports {
		slots = append(slots, some...)
	}
	n := r.server.DB.ImportHalf(slots.Have, r.keepHalf)
	if !r.keepHalf {
		r.half = n
	}
	if n > 0 {
		r.tell(redis.FindHalfImported, record.Note, r.place(record.NoOffset), redis.HalfDetail(n, r.keepHalf))
	}
}

// one applies a file; more is false if the files after it must not be applied.
func (r *replay) one(path string, size int64) (more bool, err error) {
	f, err := r.sources.OpenWhole(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r.server.DB.Select(0)
	var head [6]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	if n == 0 && strings.HasSuffix(path, ".rdb") { // servers may leave an empty file of commands, but no empty RDB file
		return r.ended(&record.CorruptError{File: r.path, Field: "RDB part", Err: errors.New("the file is empty, but a server never leaves an empty file")})
	}
	from := int64(0)
	if isSnapshot(head[:n]) {
		if from, err = r.snapshot(f, size); err != nil {
			return false, r.unread(err)
		}
		r.server.DB.Select(0)
	}
	c := NewCommands(io.NewSectionReader(disk.Steady{R: f}, from, math.MaxInt64-from), r.path, from, size)
	r.queue = nil
	err = r.commands(c)
	if r.queue != nil {
		multi := r.queue.off
		err = errors.Join(err, r.queue.close())
		r.queue = nil
		if err == nil {
			err = &CutError{File: r.path, Off: multi, End: size}
		}
	}
	return r.ended(err)
}

// commands applies commands until the end of a file.
func (r *replay) commands(c *Commands) error {
	for n := 1; ; n++ {
		args, err := c.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n%record.CheckEvery == 0 {
			if err := r.pause(c.off); err != nil {
				return err
			}
		}
		if err := r.command(args, c.start); err != nil {
			return err
		}
	}
}

// pause reports the progress in a file, and returns the error of a cancelled context.
func (r *replay) pause(off int64) error {
	if r.copied != nil {
		r.copied(r.before+off, r.log.Bytes(), 0, 0)
	}
	return r.ctx.Err()
}

// command applies a command, or queues it until its transaction ends.
func (r *replay) command(args [][]byte, off int64) error {
	name := strings.ToUpper(string(args[0][:min(len(args[0]), 16)]))
	alone := len(args) == 1
	switch {
	case r.queue == nil && name == "MULTI" && alone:
		r.queue = &queue{off: off, tempDir: r.tempDir}
		return nil
	case r.queue == nil:
		return r.apply(args, off)
	case name == "EXEC" && alone:
		q := r.queue
		r.queue = nil
		return errors.Join(q.each(r.apply), q.close())
	}
	return r.queue.add(args, off)
}

// apply applies a command to the server.
func (r *replay) apply(args [][]byte, off int64) error {
	err := commands.Do(r.server, args)
	var refused *argument.ReplyError
	var unknown *state.UnsupportedError
	why, wild := "", false
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && r.server.Writer.Known():
		r.refused.add(fmt.Sprintf("%s: %s", record.Quote(args[0]), refused.Text), r.place(off))
		return nil
	case errors.As(err, &refused):
		why = fmt.Sprintf("%s: kvferry refuses it (%s), but the server that wrote the log executed it", record.Quote(args[0]),
			refused.Text)
	case !errors.As(err, &unknown):
		return err
	case unknown.Near:
		r.near.add(unknown.Error(), r.place(off))
		return nil
	default:
		why, wild = unknown.Error(), unknown.Wild
	}
	db := r.server.DB.Selected()
	named, err := commands.Lose(r.server, args, appendLost(nil, r.file, off, why))
	if err != nil || named && !wild {
		return err
	}
	if !r.salvage {
		return &CommandError{File: r.path, Off: off, Why: why}
	}
	if r.report != nil {
		r.report(record.Finding{Kind: FindCommand, Severity: record.Error, DB: strconv.Itoa(db), Place: r.place(off),
			Detail: why + "; it may have changed keys that it does not name"})
	}
	return nil
}

// ended handles the end of a file. It drops an incomplete last command of the log, which servers truncate too.
func (r *replay) ended(err error) (more bool, _ error) {
	var cut *CutError
	var corrupt *record.CorruptError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &cut) && r.last:
		r.cutOff(cut.Off, cut.End-cut.Off)
		return false, nil
	case errors.As(err, &cut):
		if !r.salvage {
			return false, fmt.Errorf("%w; it is not the last file of the log, so a server does not start with it", err)
		}
		r.stopped(FindDamaged, cut.Off, cut.Reason())
		return false, nil
	case errors.As(err, &corrupt) && r.salvage:
		r.stopped(FindDamaged, corrupt.Off, corrupt.Reason())
		return false, nil
	}
	return false, err
}

// unread reports an unknown item in the RDB part; the rest of the file cannot be located after it. It returns any other
// error.
func (r *replay) unread(err error) error {
	var corrupt *record.CorruptError
	if !errors.Is(err, rdb.ErrNewer) || !errors.As(err, &corrupt) {
		return err
	}
	r.stopped(record.FindNewer, corrupt.Off, corrupt.Reason())
	return nil
}

// stopped reports where reading ends, before the end of the log.
func (r *replay) stopped(kind string, off int64, why string) {
	if r.report == nil {
		return
	}
	all := r.log.Bytes()
	rest := max(all-r.before-max(off, 0), 0)
	r.report(record.Finding{Kind: kind, Severity: record.Error, Place: r.place(off),
		Detail: why + "; kvferry does not read the rest of the log", Unread: rest,
		Lost: fmt.Sprintf("the log from offset %s of %s on, %s of %s (%s)", record.Number(off), r.file, record.Bytes(rest),
			record.Bytes(all), record.Percent(rest, all)), Sure: "a log does not record how many commands follow"})
}

// cutOff reports an incomplete end of the last file.
func (r *replay) cutOff(off, n int64) {
	if r.report != nil {
		r.report(record.Finding{Kind: FindCut, Severity: record.Warning, Place: r.place(off), Detail: fmt.Sprintf(
			"the log ends within a command or a transaction; its last %s do not count, and a server truncates them",
			record.Count(n, "byte")),
			Lost: fmt.Sprintf("the last %s of %s, an incomplete command or transaction that servers drop, and what followed if the file was cut off",
				record.Count(n, "byte"), r.file),
			Sure: "everything before was read; a log does not record how many commands follow"})
	}
}

func (r *replay) place(off int64) record.Place {
	return record.Place{File: r.file, Off: off, Level: -1}
}

func (r *replay) tell(kind string, severity record.Severity, place record.Place, detail string) {
	if r.report != nil {
		r.report(record.Finding{Kind: kind, Severity: severity, Place: place, Detail: detail})
	}
}

// queue buffers the commands of a transaction, each with its offset before the name. It spills to disk beyond
// maxQueued.
type queue struct {
	off     int64 // of MULTI
	tempDir string
	buf     []byte
	file    *disk.File // spilled commands
	size    int64      // of the file
}

// maxQueued is the size at which a transaction spills to disk.
const maxQueued = 4 << 20

func (q *queue) add(args [][]byte, off int64) error {
	room := 64
	for _, a := range args {
		room += len(a) + 32
	}
	q.buf = appendHead(slices.Grow(q.buf, room), len(args)+1)
	q.buf = appendArg(q.buf, strconv.AppendInt(nil, off, 10))
	for _, a := range args {
		q.buf = appendArg(q.buf, a)
	}
	if len(q.buf) < maxQueued {
		return nil
	}
	if q.file == nil {
		var err error
		if q.file, err = disk.Temp(q.tempDir, "multi"); err != nil {
			return err
		}
	}
	n, err := q.file.Write(q.buf)
	q.size += int64(n)
	q.buf = bufpool.Reset(q.buf)
	return err
}

// each calls f for each command.
func (q *queue) each(f func(args [][]byte, off int64) error) error {
	var in io.Reader = bytes.NewReader(q.buf)
	if q.file != nil {
		if _, err := q.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		in = io.MultiReader(q.file, in)
	}
	c := NewCommands(in, "", 0, q.size+int64(len(q.buf)))
	for {
		args, err := c.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		off, err := strconv.ParseInt(string(args[0]), 10, 64)
		if err == nil {
			err = f(args[1:], off)
		}
		if err != nil {
			return err
		}
	}
}

// close removes the temporary file.
func (q *queue) close() error {
	if q.file == nil {
		return nil
	}
	return q.file.Close()
}

func appendHead(dst []byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, '*'), int64(n), 10), "\r\n"...)
}

func appendArg(dst, b []byte) []byte {
	dst = append(strconv.AppendInt(append(dst, '$'), int64(len(b)), 10), "\r\n"...)
	return append(append(dst, b...), "\r\n"...)
}
