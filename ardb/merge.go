package ardb

import (
	"errors"
	"fmt"

	"kvferry/ardb/codec"
	"kvferry/record"
	"kvferry/store"
)

// The merge operator of Ardb's RocksDB databases applies operands to values, including
// HyperLogLogs.
//
//	operand +-------------+-----------------------+------------+--------------+
//	        | 1e (1B)     | command (2B, LE)      | count (1B) | arguments …  |
//	        +-------------+-----------------------+------------+--------------+
//	        commands by the server's numbers (see the op constants), arguments are data elements
//
// Operands are applied from the oldest to the newest. They outlive the server's run that wrote them: RocksDB folds them
// when a table is written or a row is read.
//
// Source: ardb 9f703a6, src/command/merge.cpp, src/db/rocksdb/rocksdb_engine.cpp.

// mergerName is the name that RocksDB stores in the database.
const mergerName = "ardb.merger"

// Merger returns the server's merge operator. Operands apply front to back. It skips operands that fail, and
// the empty operands that RocksDB makes of a lone operand. An operand of an unknown form becomes the value,
// for the reader to report. An empty value counts as missing. If no operand has an effect, the value stays the
// same, byte by byte.
func Merger() *store.Merger { return &store.Merger{Name: mergerName, Fold: fold} }

// Commands that operands carry, as the server's REDIS_CMD numbers.
const (
	opPExpireAt = 55
	opAppend    = 100
	opDecr      = 106
	opDecrBy    = 107
	opIncr      = 111
	opIncrBy    = 112
	opIncrFloat = 113
	opPSetEX    = 117
	opSetBit    = 118
	opSet       = 102
	opSetNX     = 120
	opSetRange  = 121
	opPFAdd     = 123
	opSetXX     = 126
	opHIncr     = 154
	opHIncrF    = 155
	opHSet      = 160
	opHSetNX    = 161
)

// aliases maps the commands of "redis-compatible-mode no" to the ordinary ones.
var aliases = map[uint16]uint16{
	1001: opAppend, 1002: opIncrBy, 1003: opIncrFloat, 1004: opIncr, 1005: opDecr, 1006: opDecrBy, 1007: opSetNX,
	1008: opSet, 1009: opSetRange, 1010: opHSet, 1011: opHSetNX, 1013: opHIncr, 1014: opHIncrF, 1028: opSetBit, 1029: opPFAdd,
}

// maxString is the longest string that SETRANGE and SETBIT make.
const maxString = 512 << 20

// Reasons why an operand fails.
var (
	errNoEffect = errors.New("not performed")
	errOperand  = errors.New("cannot be applied to this value")
)

// state is a value that operands are applied to.
type state struct {
	kind    codec.Kind // of the row key
	head    codec.Value
	data    []codec.Data // set for strings and hash fields
	changed bool
}

func fold(dst, key, base []byte, operands [][]byte) ([]byte, bool, error) {
	kind := codec.KindMeta
	if _, end, ok := codec.SplitUser(key, false); ok {
		kind = codec.Kind(key[end])
	}
	head, data, err := codec.DecodeValue(base)
	if err != nil {
		// The server cannot read such a value either. It is kept for the reader to report.
		return append(dst, base...), true, nil
	}
	s := state{kind: kind, head: head, data: data}
	for _, o := range operands {
		if len(o) == 0 {
			continue
		}
		op, args, err := codec.DecodeValue(o)
		if err != nil || checkOperand(&op, len(args)) != nil {
			return appendUnknown(dst, o), true, nil
		}
		if s.apply(op.Op, args) == nil {
			s.changed = true
		}
	}
	if !s.changed {
		return append(dst, base...), len(base) > 0, nil
	}
	return codec.AppendValue(dst, &s.head, s.data...), true, nil
}

// appendUnknown appends an operand as the value: its effect on the operand below it is unknown. The reader
// reports values that begin like an operand.
func appendUnknown(dst, operand []byte) []byte {
	if codec.Kind(operand[0]) != codec.KindOperand {
		dst = append(dst, byte(codec.KindOperand))
	}
	return append(dst, operand...)
}

// checkOperand returns an error for an operand of an unknown form.
func checkOperand(op *codec.Value, args int) error {
	if op.Kind != codec.KindOperand {
		return record.Unknown(0, "type", fmt.Sprintf("a merge operand of kind %s", op.Kind))
	}
	code := op.Op
	if o, ok := aliases[code]; ok {
		code = o
	}
	want, ok := operandArgs[code]
	switch {
	case !ok:
		return record.Unknown(1, "command", fmt.Sprintf("merge operand of command %d", op.Op))
	case want.most >= 0 && args > want.most:
		return fmt.Errorf("merge operand of command %d with %d arguments, want %d: %w", op.Op, args, want.most,
			record.ErrTrailing)
	}
	return nil
}

// unmerged explains why a merge operand is in place of a value: the store did not fold it, or it has an
// unknown form.
func unmerged(v *codec.Value, operand []byte) error {
	op, args, err := codec.DecodeValue(operand)
	if err == nil {
		err = checkOperand(&op, len(args))
	}
	if err == nil {
		err = fmt.Errorf("a merge operand (command %d) in place of a value", v.Op)
	}
	return err
}

// apply applies one operand. A failing operand changes no state.
func (s *state) apply(op uint16, args []codec.Data) error {
	if o, ok := aliases[op]; ok {
		op = o
	}
	if need, ok := operandArgs[op]; !ok || len(args) < need.least {
		return fmt.Errorf("operand %d with %d arguments: %w", op, len(args), errOperand)
	}
	switch op {
	case opSet, opSetNX, opSetXX, opPSetEX:
		return s.set(op, args[0])
	case opAppend:
		return s.text(func(b []byte) ([]byte, error) { return codec.AppendServed(b, args[0]), nil })
	case opIncr, opIncrBy:
		return s.incr(args[0].Int64())
	case opDecr:
		return s.incr(-1)
	case opDecrBy:
		return s.incr(-args[0].Int64())
	case opIncrFloat:
		return s.incrFloat(args[0].Float64())
	case opSetRange:
		return s.text(func(b []byte) ([]byte, error) { return setRange(b, args[0].Int64(), codec.AppendServed(nil, args[1])) })
	case opSetBit:
		return s.text(func(b []byte) ([]byte, error) { return setBit(b, args[0].Int64(), args[1].Int64()) })
	case opPFAdd:
		return s.pfAdd(args)
	case opPExpireAt:
		return s.expire(args[0].Int64())
	case opHSet, opHSetNX:
		return s.hset(op, args[0])
	default:
		return s.hincr(op, args[0])
	}
}

// numArgs is the number of arguments that a command reads, and the number it may have; -1: any number.
type numArgs struct{ least, most int }

// operandArgs are the arguments of commands. DECR reads no argument, but the server has one. SET and its kin ignore
// arguments after the value, such as an expiry.
var operandArgs = map[uint16]numArgs{
	opSet: {1, 2}, opSetNX: {1, 2}, opSetXX: {1, 2}, opPSetEX: {1, 2}, opAppend: {1, 1}, opIncr: {1, 1}, opIncrBy: {1, 1},
	opDecr: {0, 1}, opDecrBy: {1, 1}, opIncrFloat: {1, 1}, opSetRange: {2, 2}, opSetBit: {2, 2}, opPFAdd: {0, -1},
	opPExpireAt: {1, 1}, opHSet: {1, 1}, opHSetNX: {1, 1}, opHIncr: {1, 1}, opHIncrF: {1, 1},
}

// datum returns the string of a string value; nil data if the value does not exist yet.
func (s *state) datum() codec.Data {
	if len(s.data) == 0 {
		return codec.Data{}
	}
	return s.data[0]
}

// store makes the value a string that keeps its expiry.
func (s *state) store(d codec.Data) error {
	s.head.Kind, s.data = codec.KindString, []codec.Data{d}
	return nil
}

// isString reports whether the value is a string or absent.
func (s *state) isString() bool { return s.head.Kind == 0 || s.head.Kind == codec.KindString }

// set is SET and its kin. It ignores an expiry argument, as the server does.
func (s *state) set(op uint16, v codec.Data) error {
	switch {
	case !s.isString():
		return errOperand
	case op == opSetNX && s.head.Kind != 0, op == opSetXX && s.head.Kind == 0:
		return errNoEffect
	}
	return s.store(v)
}

// text changes the text of a string; the result is never an integer.
func (s *state) text(f func([]byte) ([]byte, error)) error {
	if !s.isString() {
		return errOperand
	}
	b, err := f(codec.AppendServed(nil, s.datum()))
	if err != nil {
		return err
	}
	return s.store(codec.TextData(b))
}

func (s *state) incr(by int64) error {
	if s.head.Kind != 0 && (s.head.Kind != codec.KindString || s.datum().Tag != codec.TagInt) {
		return errOperand
	}
	return s.store(codec.IntData(s.datum().Int64() + by))
}

func (s *state) incrFloat(by float64) error {
	d := s.datum()
	if s.head.Kind != 0 && (s.head.Kind != codec.KindString || !d.IsNumber()) {
		return errOperand
	}
	return s.store(codec.FloatData(d.Float64() + by))
}

func setRange(b []byte, off int64, v []byte) ([]byte, error) {
	if off < 0 || off > maxString-int64(len(v)) {
		return nil, errOperand
	}
	end := int(off) + len(v)
	if end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[off:], v)
	return b, nil
}

// setBit sets a bit, the most significant of a byte first.
func setBit(b []byte, off, bit int64) ([]byte, error) {
	if off < 0 || off>>3 >= maxString {
		return nil, errOperand
	}
	at, mask := int(off>>3), byte(0x80)>>(off&7)
	if at >= len(b) {
		b = append(b, make([]byte, at+1-len(b))...)
	}
	if bit&1 != 0 {
		b[at] |= mask
	} else {
		b[at] &^= mask
	}
	return b, nil
}

func (s *state) pfAdd(args []codec.Data) error {
	if !s.isString() {
		return errOperand
	}
	var value []byte
	if s.head.Kind != 0 {
		value = codec.AppendServed([]byte{}, s.datum())
	}
	members := make([][]byte, len(args))
	for i := range args {
		if !args[i].IsText() {
			return errOperand // the server's own operands are strings
		}
		members[i] = args[i].Text
	}
	out, changed, err := pfAdd(value, members)
	if err != nil {
		return err
	}
	if !changed {
		return errNoEffect
	}
	return s.store(codec.TextData(out))
}

// expire sets the expiry of an existing value.
func (s *state) expire(ms int64) error {
	if s.head.Kind == 0 || !s.head.Kind.IsMeta() || s.head.ExpireMS == ms {
		return errNoEffect
	}
	s.head.ExpireMS = ms
	return nil
}

// hset creates a hash or makes its size unknown on a META row, and sets a field on others.
func (s *state) hset(op uint16, v codec.Data) error {
	if s.kind == codec.KindMeta {
		return s.hsetMeta(v)
	}
	switch {
	case s.head.Kind == 0:
		s.head.Kind = codec.KindField
	case op == opHSetNX, s.head.Kind != codec.KindField:
		return errNoEffect
	}
	s.data = []codec.Data{v}
	return nil
}

func (s *state) hsetMeta(v codec.Data) error {
	switch {
	case s.head.Kind == 0:
		s.head.Kind, s.head.Size, s.data = codec.KindHash, codec.SizeUnknown, nil
		if v.Tag == codec.TagInt {
			s.head.Size = v.Int
		}
	case s.head.Kind != codec.KindHash || s.head.Size == codec.SizeUnknown:
		return errNoEffect
	default:
		s.head.Size = codec.SizeUnknown
	}
	return nil
}

// hincr adds to a field.
func (s *state) hincr(op uint16, by codec.Data) error {
	if !by.IsNumber() || op == opHIncr && by.Tag != codec.TagInt {
		return errOperand
	}
	d := s.datum()
	switch {
	case s.head.Kind == 0:
		s.head.Kind, s.data = codec.KindField, []codec.Data{by}
		return nil
	case s.head.Kind != codec.KindField:
		return errOperand
	case op == opHIncr && d.Tag == codec.TagInt:
		s.data = []codec.Data{codec.IntData(d.Int + by.Int)}
		return nil
	case op == opHIncrF && d.IsNumber():
		s.data = []codec.Data{codec.FloatData(d.Number() + by.Number())}
		return nil
	}
	return errOperand
}
