package commands

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// maxString is the default limit of strings that a server builds from shorter ones; it does not apply while a
// server loads a log.
const maxString = 512 << 20

var (
	errTooLong = state.Unsupported("APPEND", "the string becomes longer than 512 MiB")
	errExpire  = argument.Refuse("ERR invalid expire time")
)

// setOptions are the options of SET, of its kin that set several keys or fields, and of commands that change
// only the expiry.
type setOptions struct {
	when   string // NX, XX, FNX, FXX, IFEQ, IFNE, IFDEQ or IFDNE
	than   []byte // of IFEQ and its kin
	field  string // FNX or FXX beside NX or XX
	get    bool
	ttl    string // EX, PX, EXAT, PXAT, KEEPTTL or PERSIST
	time   []byte // of the first four
	expire int64  // Unix ms
}

// The options that commands take.
var (
	setTakes    = []string{"NX", "XX", "GET", "KEEPTTL", "IFEQ", "IFNE", "IFDEQ", "IFDNE", "EX", "PX", "EXAT", "PXAT"}
	msetexTakes = []string{"NX", "XX", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"}
	hsetexTakes = []string{"FNX", "FXX", "NX", "XX", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"}
	getexTakes  = []string{"PERSIST", "EX", "PX", "EXAT", "PXAT"}
)

// read reads all of args.
func (o *setOptions) read(s *state.Server, command string, takes []string, args [][]byte) (err error) {
	for i := 0; i < len(args) && err == nil; {
		i, err = o.option(s, command, takes, args, i)
	}
	return err
}

// moment parses the time of the last option that has one: a server ignores the others.
func (o *setOptions) moment(s *state.Server) error {
	if o.time == nil {
		return nil
	}
	t, err := argument.ParseInt(o.time)
	if err == nil && t <= 0 {
		err = errExpire
	}
	if err == nil {
		o.expire, err = moment(s, o.ttl, t)
	}
	return err
}

// option parses one option at args[i] and returns the index of the next.
func (o *setOptions) option(s *state.Server, command string, takes []string, args [][]byte, i int) (int, error) {
	word := string(s.Upper(args[i]))
	if !slices.Contains(takes, word) {
		return 0, s.Option(command, args[i])
	}
	group, value := &o.when, false
	switch word {
	case "GET":
		o.get = true
		return i + 1, nil
	case "FNX", "FXX":
		group = &o.field
	case "KEEPTTL", "PERSIST":
		group = &o.ttl
	case "EX", "PX", "EXAT", "PXAT":
		group, value = &o.ttl, true
	case "IFEQ", "IFNE", "IFDEQ", "IFDNE":
		value = true
	}
	if *group != "" && *group != word || value && i+1 >= len(args) {
		return 0, argument.ErrSyntax
	}
	*group = word
	switch {
	case !value:
		return i + 1, nil
	case group == &o.when:
		o.than = args[i+1]
		return i + 2, nil
	}
	o.time = args[i+1]
	return i + 2, nil
}

// allows reports whether the old value of a key, nil if it does not exist, meets the condition of SET.
func (o *setOptions) allows(old *state.Value) (bool, error) {
	switch o.when {
	case "":
		return true, nil
	case "NX":
		return old == nil, nil
	case "XX":
		return old != nil, nil
	}
	equal := o.when == "IFEQ" || o.when == "IFDEQ"
	digest := o.when == "IFDEQ" || o.when == "IFDNE"
	switch {
	case old == nil:
		return !equal, nil
	case old.Type != record.String:
		return false, argument.ErrWrongType
	case digest && len(o.than) != 16:
		return false, argument.Refuse("ERR must be exactly 16 hexadecimal characters")
	case digest:
		return equal == strings.EqualFold(string(o.than), fmt.Sprintf("%016x", xxh3.Hash(old.Content()))), nil
	}
	return equal == bytes.Equal(o.than, old.Content()), nil
}

// expiryUnits are the forms of an expiry and their units in ms; negative for times relative to now.
var expiryUnits = map[string]int64{"EX": -1000, "PX": -1, "EXAT": 1000, "PXAT": 1}

// moment turns the time of EX, PX, EXAT or PXAT into Unix ms.
func moment(s *state.Server, unit string, t int64) (int64, error) {
	ms := expiryUnits[unit]
	base := int64(0)
	if ms < 0 {
		ms, base = -ms, s.Now
	}
	if t > math.MaxInt64/ms || t < math.MinInt64/ms || base > 0 && t*ms > math.MaxInt64-base {
		return 0, errExpire
	}
	return t*ms + base, nil
}

func cmdSet(s *state.Server, a [][]byte) error {
	if len(a) == 3 {
		s.DB.SetString(a[1], a[2], 0)
		return nil
	}
	var o setOptions
	if err := o.read(s, "SET", setTakes, a[3:]); err != nil {
		return err
	}
	if err := o.moment(s); err != nil {
		return err
	}
	if o.get || o.when != "" || o.ttl == "KEEPTTL" {
		old := s.DB.Find(a[1])
		if o.get && old != nil && old.Type != record.String {
			return argument.ErrWrongType
		}
		if ok, err := o.allows(old); err != nil || !ok {
			return err
		}
		if o.ttl == "KEEPTTL" && old != nil {
			o.expire = old.ExpireMS
		}
	}
	s.DB.SetString(a[1], a[2], o.expire)
	return nil
}

// msetexPairs returns the keys and values of MSETEX, and the options after them.
func msetexPairs(a [][]byte) (pairs, options [][]byte, err error) {
	n, err := argument.ParseInt(a[1])
	if err != nil || n < 1 || n > math.MaxInt32 {
		return nil, nil, argument.Refuse("ERR invalid numkeys value")
	}
	if int64(len(a)-2) < 2*n {
		return nil, nil, argument.ErrArgs
	}
	return a[2 : 2+2*n], a[2+2*n:], nil
}

func cmdMsetex(s *state.Server, a [][]byte) error {
	pairs, options, err := msetexPairs(a)
	if err != nil {
		return err
	}
	var o setOptions
	if err := o.read(s, "MSETEX", msetexTakes, options); err != nil {
		return err
	}
	if err := o.moment(s); err != nil {
		return err
	}
	for i := 0; i < len(pairs) && o.when != ""; i += 2 {
		if ok, err := o.allows(s.DB.Find(pairs[i])); err != nil || !ok {
			return err
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		expire := o.expire
		if old := s.DB.Find(pairs[i]); o.ttl == "KEEPTTL" && old != nil {
			expire = old.ExpireMS
		}
		s.DB.SetString(pairs[i], pairs[i+1], expire)
	}
	return nil
}

// cmdDelex is DELEX with its condition.
func cmdDelex(s *state.Server, a [][]byte) error {
	if len(a) == 2 {
		return cmdDel(s, a)
	}
	if len(a) != 4 {
		return argument.ErrArgs
	}
	v := s.DB.Find(a[1])
	if v == nil {
		return nil
	}
	var o setOptions
	if err := o.read(s, "DELEX", setTakes[4:8], a[2:]); err != nil {
		return err
	}
	if ok, err := o.allows(v); err != nil || !ok {
		return err
	}
	return cmdDel(s, a[:2])
}

// cmdDelifeq is DELIFEQ of Valkey.
func cmdDelifeq(s *state.Server, a [][]byte) error {
	return cmdDelex(s, [][]byte{a[0], a[1], []byte("IFEQ"), a[2]})
}

// cmdSetex is SETEX and PSETEX.
func cmdSetex(unit string) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		t, err := argument.ParseInt(a[2])
		if err != nil {
			return err
		}
		if t <= 0 {
			return errExpire
		}
		at, err := moment(s, unit, t)
		if err == nil {
			s.DB.SetString(a[1], a[3], at)
		}
		return err
	}
}

func cmdSetnx(s *state.Server, a [][]byte) error {
	if s.DB.Find(a[1]) == nil {
		s.DB.SetString(a[1], a[2], 0)
	}
	return nil
}

func cmdGetset(s *state.Server, a [][]byte) error {
	if _, err := s.Find(a[1], record.String); err != nil {
		return err
	}
	s.DB.SetString(a[1], a[2], 0)
	return nil
}

func cmdMset(s *state.Server, a [][]byte) error {
	if len(a)%2 != 1 {
		return argument.ErrArgs
	}
	for i := 1; i < len(a); i += 2 {
		s.DB.SetString(a[i], a[i+1], 0)
	}
	return nil
}

func cmdMsetnx(s *state.Server, a [][]byte) error {
	if len(a)%2 != 1 {
		return argument.ErrArgs
	}
	for i := 1; i < len(a); i += 2 {
		if s.DB.Find(a[i]) != nil {
			return nil
		}
	}
	return cmdMset(s, a)
}

func cmdAppend(s *state.Server, a [][]byte) error {
	if s.DB.Append(a[1], a[2]) {
		return nil
	}
	v, err := s.Find(a[1], record.String)
	if err != nil {
		return err
	}
	if v == nil {
		s.DB.SetString(a[1], a[2], 0)
		return nil
	}
	if v.Len()+int64(len(a[2])) > maxString {
		return errTooLong
	}
	v.SetBytes(v.Len(), a[2])
	s.DB.Store(a[1], v)
	return nil
}

func cmdSetrange(s *state.Server, a [][]byte) error {
	off, err := argument.ParseInt(a[2])
	if err != nil {
		return err
	}
	if off < 0 {
		return argument.ErrRange
	}
	v, err := s.FindOrMake(a[1], record.String)
	if err != nil || len(a[3]) == 0 {
		return err
	}
	if off > maxString-int64(len(a[3])) {
		return errTooLong
	}
	v.SetBytes(off, a[3])
	s.DB.Store(a[1], v)
	return nil
}

// cmdIncr is INCR and DECR, or INCRBY and DECRBY when the number is an argument.
func cmdIncr(sign int64) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		by := int64(1)
		if len(a) > 2 {
			var err error
			if by, err = argument.ParseInt(a[2]); err != nil {
				return err
			}
		}
		if sign < 0 && by == math.MinInt64 {
			return argument.Refuse("ERR decrement would overflow")
		}
		v, err := s.Find(a[1], record.String)
		if err != nil {
			return err
		}
		n, expire := int64(0), int64(0)
		if v != nil {
			if v.Len() > 20 {
				return argument.ErrInteger
			}
			if n, err = argument.ParseInt(v.Content()); err != nil {
				return err
			}
			expire = v.ExpireMS
		}
		if n, err = add(n, sign*by); err != nil {
			return err
		}
		s.DB.SetString(a[1], strconv.AppendInt(nil, n, 10), expire)
		return nil
	}
}

func add(a, b int64) (int64, error) {
	if a < 0 && b < math.MinInt64-a && b < 0 || a > 0 && b > 0 && b > math.MaxInt64-a {
		return 0, argument.Refuse("ERR increment or decrement would overflow")
	}
	return a + b, nil
}
