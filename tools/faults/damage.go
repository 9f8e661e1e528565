package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/fixtures"
)

// damage is one change to a copy of a source.
type damage struct {
	kind string // name in damages
	file string // changed file, relative to the source
	what string // details for messages: offset, length
}

func (d damage) String() string { return fmt.Sprintf("%s %s%s", d.kind, d.file, d.what) }

// patient is a copy to damage.
type patient struct {
	r     *fixtures.Rand
	s     *source
	dir   string
	other *source // source of foreign files
	only  string  // pattern of the names of eligible files
	file  string  // chosen file
	data  []byte  // content of file
}

// damages are the kinds of damage. Each changes p.data and returns true, or changes the copy itself and returns false.
var damages = []struct {
	kind string
	do   func(p *patient) (what string, write bool)
}{
	{"flip", func(p *patient) (string, bool) { return p.flip(1) }},
	{"flips", func(p *patient) (string, bool) { return p.flip(2 + p.r.Intn(15)) }},
	{"zeros", (*patient).zeros},
	{"random", (*patient).random},
	{"cut", func(p *patient) (string, bool) { return p.cut(p.r.Intn(len(p.data) + 1)) }},
	{"cut-block", func(p *patient) (string, bool) { return p.cut(p.r.Intn(len(p.data)/4096+1) * 4096) }},
	{"stale", (*patient).stale},
	{"empty", func(p *patient) (string, bool) { return p.cut(0) }},
	{"extend", (*patient).extend},
	{"swap-blocks", (*patient).swapBlocks},
	{"remove", (*patient).remove},
	{"remove-store", (*patient).removeStore},
	{"swap-files", (*patient).swapFiles},
	{"foreign", (*patient).foreign},
	{"copied", (*patient).copied},
	{"renamed", (*patient).renamed},
}

// weigh returns the relative frequency of choosing a file: files with data come up more often.
func weigh(file string) int {
	switch base := filepath.Base(file); {
	case strings.HasPrefix(base, "LOG"), base == "LOCK", base == "lock.mdb", strings.HasPrefix(base, "OPTIONS"), base == "IDENTITY":
		return 1
	case strings.HasSuffix(base, ".log"), strings.HasPrefix(base, "MANIFEST"), base == "CURRENT":
		return 12
	}
	return 20
}

// choose picks a random file for which test is true.
func (p *patient) choose(test func(string) bool) (string, bool) {
	fits := func(f string) bool { return named(f, p.only) && test(f) }
	sum := 0
	for _, f := range p.s.files {
		if fits(f) {
			sum += weigh(f)
		}
	}
	if sum == 0 {
		return "", false
	}
	at := p.r.Intn(sum)
	for _, f := range p.s.files {
		if fits(f) {
			if at -= weigh(f); at < 0 {
				return f, true
			}
		}
	}
	return "", false
}

// suffer applies a random damage.
func (p *patient) suffer() (damage, error) {
	for {
		d := fixtures.Pick(p.r, damages)
		p.file, _ = p.choose(func(string) bool { return true })
		path := filepath.Join(p.dir, p.file)
		var err error
		if p.data, err = os.ReadFile(path); err != nil {
			return damage{}, err
		}
		before := string(p.data)
		what, write := d.do(p)
		if write && string(p.data) == before || !write && what == "" {
			continue // no change: try another damage
		}
		if write {
			err = replace(path, p.data)
		}
		return damage{d.kind, p.file, what}, err
	}
}

// span chooses a random part of the file.
func (p *patient) span() (from, to int) {
	if len(p.data) == 0 {
		return 0, 0
	}
	from = p.r.Intn(len(p.data))
	return from, min(len(p.data), from+1+p.r.Intn(4096))
}

func (p *patient) flip(n int) (string, bool) {
	what := ""
	for ; n > 0 && len(p.data) > 0; n-- {
		at, bit := p.r.Intn(len(p.data)), p.r.Intn(8)
		p.data[at] ^= 1 << bit
		what += fmt.Sprintf(" %d.%d", at, bit)
	}
	return what, true
}

func (p *patient) zeros() (string, bool) {
	from, to := p.span()
	clear(p.data[from:to])
	return fmt.Sprintf(" %d-%d", from, to), true
}

func (p *patient) random() (string, bool) {
	from, to := p.span()
	p.r.Fill(p.data[from:to])
	return fmt.Sprintf(" %d-%d", from, to), true
}

func (p *patient) cut(n int) (string, bool) {
	n = min(n, len(p.data))
	what := fmt.Sprintf(" from %d to %d bytes", len(p.data), n)
	p.data = p.data[:n]
	return what, true
}

// stale cuts a log or MANIFEST back to an earlier state, after a whole record.
func (p *patient) stale() (string, bool) {
	file, ok := p.choose(isLog)
	if !ok {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(p.dir, file))
	ends := recordEnds(data)
	if err != nil || len(ends) == 0 {
		return "", false
	}
	p.file, p.data = file, data
	return p.cut(fixtures.Pick(p.r, append(ends[:len(ends)-1], 0)))
}

func (p *patient) extend() (string, bool) {
	more := make([]byte, 1+p.r.Intn(1<<uint(p.r.Intn(17))))
	what := fmt.Sprintf(" by %d zeros", len(more))
	if p.r.Chance(50) {
		p.r.Fill(more)
		what = fmt.Sprintf(" by %d random bytes", len(more))
	}
	p.data = append(p.data, more...)
	return what, true
}

// swapBlocks exchanges two blocks of the file, or overwrites one with another, like a disk that misplaces a write.
func (p *patient) swapBlocks() (string, bool) {
	size := fixtures.Pick(p.r, []int{512, 4096, 32768})
	n := len(p.data) / size
	if n < 2 {
		return "", true
	}
	i, j := p.r.Intn(n), p.r.Intn(n)
	a, b := p.data[i*size:][:size], p.data[j*size:][:size]
	first := slices.Clone(a)
	copy(a, b)
	if p.r.Chance(50) {
		copy(b, first)
		return fmt.Sprintf(" blocks of %d: %d and %d", size, i, j), true
	}
	return fmt.Sprintf(" block of %d: %d in place of %d", size, j, i), true
}

func (p *patient) remove() (string, bool) {
	if os.Remove(filepath.Join(p.dir, p.file)) != nil {
		return "", false
	}
	return " gone", false
}

// removeStore removes the directory of the file.
func (p *patient) removeStore() (string, bool) {
	dir := filepath.Dir(p.file)
	if dir == "." || os.RemoveAll(filepath.Join(p.dir, dir)) != nil {
		return "", false
	}
	return " and its neighbours removed", false
}

// like reports whether two files are of the same kind.
func like(a, b string) bool {
	a, b = filepath.Base(a), filepath.Base(b)
	if x := filepath.Ext(a); x != "" {
		return x == filepath.Ext(b)
	}
	a, _, _ = strings.Cut(a, "-")
	b, _, _ = strings.Cut(b, "-")
	return a == b
}

// swapFiles exchanges two files of the same kind.
func (p *patient) swapFiles() (string, bool) {
	other, ok := p.choose(func(f string) bool { return f != p.file && like(f, p.file) })
	if !ok {
		return "", false
	}
	from := filepath.Join(p.dir, other)
	data, err := os.ReadFile(from)
	if err != nil || string(data) == string(p.data) || replace(from, p.data) != nil {
		return "", false
	}
	p.data = data
	return " with " + other, true
}

// foreign takes a file of the same kind from another dataset, usually with the same name.
func (p *patient) foreign() (string, bool) {
	var same, all []string
	for _, f := range p.other.files {
		if like(f, p.file) {
			all = append(all, f)
			if f == p.file || filepath.Base(f) == filepath.Base(p.file) {
				same = append(same, f)
			}
		}
	}
	if len(same) > 0 && p.r.Chance(70) {
		all = same
	}
	if len(all) == 0 {
		return "", true
	}
	f := fixtures.Pick(p.r, all)
	data, err := os.ReadFile(filepath.Join(p.other.dir, f))
	if err != nil {
		return "", true
	}
	what := fmt.Sprintf(" is %s of %s", f, p.other.name)
	if p.r.Chance(30) && len(data) > len(p.data) { // also of the same size
		data, what = data[:len(p.data)], what+", cut to its size"
	}
	p.data = data
	return what, true
}

// number returns the name of a numbered file with another number, or "".
func (p *patient) number() string {
	base := filepath.Base(p.file)
	digits := strings.TrimLeft(base, "MANIFEST-")
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
	if len(digits) < 6 {
		return ""
	}
	return filepath.Join(filepath.Dir(p.file), strings.Replace(base, digits, fmt.Sprintf("%06d", p.r.Intn(40)), 1))
}

// copied copies the file to another number.
func (p *patient) copied() (string, bool) {
	to := p.number()
	if to == "" || slices.Contains(p.s.files, to) || replace(filepath.Join(p.dir, to), p.data) != nil {
		return "", false
	}
	return " also as " + filepath.Base(to), false
}

func (p *patient) renamed() (string, bool) {
	to := p.number()
	if to == "" || slices.Contains(p.s.files, to) || os.Rename(filepath.Join(p.dir, p.file), filepath.Join(p.dir, to)) != nil {
		return "", false
	}
	return " is now " + filepath.Base(to), false
}
