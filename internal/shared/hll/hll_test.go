package hll

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
)

const header = "\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"

func of(encoding byte, registers string) Sketch {
	return Sketch("HYLL" + string(encoding) + header + registers)
}

// TestRegisters decodes golden bytes of every kind of run, and of dense registers.
func TestRegisters(t *testing.T) {
	dense := bytes.Repeat([]byte{0}, DenseSize-HeaderSize)
	dense[0], dense[1], dense[2], dense[len(dense)-1] = 0b01_000001, 0b0001_1111, 0b101010_00, 0b111111_00
	for _, c := range []struct {
		name string
		s    Sketch
		want map[int]byte // of registers that are not 0; nil: damaged
	}{
		{"new", New(), map[int]byte{}},
		{"values", of(sparse, "\x84\xfe\x00\x3f\x7f\xba"), map[int]byte{0: 2, 1: 32, 2: 32, 3: 32}},
		{"the last", of(sparse, "\x7f\xfe\x80"), map[int]byte{NumRegisters - 1: 1}},
		{"too few", of(sparse, "\x7f\xfe"), nil},
		{"too many", of(sparse, "\x7f\xfe\x81"), nil},
		{"none", of(sparse, ""), nil},
		{"a cut run", of(sparse, "\x80\x7f"), nil},
		{"dense", of(0, string(dense)), map[int]byte{0: 1, 1: 61, 2: 1, 3: 42, NumRegisters - 1: 63}},
	} {
		if !Is(c.s) {
			t.Errorf("%s: no HyperLogLog", c.name)
		}
		want := Registers{}
		for i, v := range c.want {
			want[i] = v
		}
		got, ok := c.s.Registers()
		if ok != (c.want != nil) || ok && got != want {
			t.Errorf("%s: %v", c.name, ok)
		}
		kept := bytes.Clone(c.s)
		d, ok := c.s.AppendDense([]byte("x"))
		if ok != (c.want != nil) || !ok && string(d) != "x" || !bytes.Equal(kept, c.s) {
			t.Errorf("%s: dense: %v, %d bytes", c.name, ok, len(d))
		}
		if !ok {
			continue
		}
		if got, _ := Sketch(d[1:]).Registers(); len(d) != 1+DenseSize || got != want || string(d[6:17]) != string(c.s[5:16]) {
			t.Errorf("%s: dense it is another one", c.name)
		}
	}
}

func TestIs(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "HYLL": false, string(of(sparse, "")): true, string(of(sparse, "")[:15]): false, string(of(2, "")): false, string(of(dense, "\x00")): false,
		"HYLO" + string(New()[4:]): false, string(of(dense, strings.Repeat("\xff", DenseSize-HeaderSize))): true,
	} {
		if Is([]byte(s)) != want {
			t.Errorf("%.20q: %v", s, !want)
		}
	}
}

// TestRaise: runs are split and joined as in a server.
func TestRaise(t *testing.T) {
	const zeros = "\x7f\xff" // 16384 of them
	for _, c := range []struct {
		name, runs string
		i          int
		value      byte
		want       string // "": it is as before
	}{
		{"the first", zeros, 0, 1, "\x80\x7f\xfe"},
		{"the last", zeros, NumRegisters - 1, 32, "\x7f\xfe\xfc"},
		{"between", zeros, 64, 2, "\x3f\x84\x7f\xbe"},
		{"lower", "\x8c\x7f\xfe", 0, 4, ""},
		{"higher", "\x8c\x7f\xfe", 0, 5, "\x90\x7f\xfe"},
		{"within a run of values", "\x83\x7f\xfb", 1, 3, "\x80\x88\x81\x7f\xfb"},
		{"joined with the run before", "\x88\x7f\xfe", 1, 3, "\x89\x7f\xfd"},
		{"joined on both sides", "\x88\x80\x89\x7f\xfc", 1, 3, "\x8b\x7f\xfc"},
		{"not joined beyond four", "\x8b\x7f\xfb", 4, 3, "\x8b\x88\x7f\xfa"},
	} {
		out, changed, ok := of(sparse, c.runs).Raise(c.i, c.value)
		want := c.want
		if want == "" {
			want = c.runs
		}
		if !ok || changed != (c.want != "") || !bytes.Equal(out, of(sparse, want)) {
			t.Errorf("%s: %x, %v, %v", c.name, out[HeaderSize:], changed, ok)
		}
	}
	if out, changed, ok := New().Raise(5, maxRun+1); !ok || !changed || !out.IsDense() || out.at(5) != maxRun+1 ||
		out.at(4) != 0 || out.at(6) != 0 {
		t.Error("a value beyond those of runs does not make it dense")
	}
	for _, runs := range []string{"", "\x7f", "\x80"} {
		if _, _, ok := of(sparse, runs).Raise(9, 1); ok {
			t.Errorf("%x: the register is not there and was raised", runs)
		}
	}
}

// TestModel adds members one by one and compares with plain registers, until long after the switch to the
// dense form.
func TestModel(t *testing.T) {
	var want Registers
	s := New()
	rng := rand.New(rand.NewSource(3))
	dense := 0
	for i := range 6000 {
		m := []byte(fmt.Sprintf("member %d", rng.Intn(100000)))
		index, count := Place(m)
		up := count > want[index]
		want[index] = max(want[index], count)
		out, changed, ok := s.Add(m)
		if !ok || changed != up {
			t.Fatalf("member %d: changed %v, want %v, %v", i, changed, up, ok)
		}
		if s = out; s.IsDense() && dense == 0 {
			dense = i
		}
		if got, ok := s.Registers(); i%97 == 0 && (!ok || got != want) {
			t.Fatalf("registers differ after %d members", i)
		}
		if !s.IsDense() && len(s) > MaxSparse || !Is(s) {
			t.Fatalf("after %d members: %d bytes, header %x", i, len(s), s[:HeaderSize])
		}
	}
	if got, ok := s.Registers(); dense == 0 || !ok || got != want {
		t.Errorf("dense from member %d on", dense)
	}
}

// TestCount: the estimate is within the standard error for the number of registers.
func TestCount(t *testing.T) {
	s := New()
	for n := range 20001 {
		if n == 0 || n == 1 || n == 100 || n == 5000 || n == 20000 {
			r, _ := s.Registers()
			if got := float64(r.Count()); math.Abs(got-float64(n)) > 0.02*float64(n) {
				t.Errorf("%v, want %d", got, n)
			}
		}
		s, _, _ = s.Add(fmt.Append(nil, n))
	}
}

// TestDamage tries every strict prefix and every flipped bit: no panic, and every dense form has all
// registers.
func TestDamage(t *testing.T) {
	s := New()
	for _, m := range []string{"a", "b", "c"} {
		s, _, _ = s.Add([]byte(m))
	}
	try := func(s Sketch) {
		if !Is(s) {
			return
		}
		regs, whole := s.Registers()
		d, ok := s.Dense()
		if ok != whole {
			t.Errorf("%x: dense %v, registers %v", s, ok, whole)
		} else if ok {
			if got, _ := d.Registers(); got != regs {
				t.Errorf("%x: dense it is another one", s)
			}
		}
		Sketch(bytes.Clone(s)).Add([]byte("zz"))
	}
	for n := range s {
		try(bytes.Clone(s[:n]))
	}
	for i := range s {
		for bit := range 8 {
			b := bytes.Clone(s)
			b[i] ^= 1 << bit
			try(b)
		}
	}
}

// FuzzAdd: a string with the right header either counts or is reported as damaged.
func FuzzAdd(f *testing.F) {
	f.Add([]byte(New()), []byte("a"))
	f.Add([]byte(of(sparse, "\x84\xfe\x00\x3f\x7f\xba")), []byte{})
	f.Add([]byte(of(sparse, "\x7f")), []byte("b"))
	f.Fuzz(func(t *testing.T, s, element []byte) {
		if !Is(s) {
			return
		}
		before, whole := Sketch(s).Registers()
		out, changed, ok := Sketch(bytes.Clone(s)).Add(element)
		if !whole {
			return
		}
		i, value := Place(element)
		up := value > before[i]
		before[i] = max(before[i], value)
		if got, sound := out.Registers(); !ok || changed != up || !sound || got != before {
			t.Fatalf("%x, %v, %v", out, changed, ok)
		}
	})
}
