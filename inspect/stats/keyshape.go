package stats

import "encoding/binary"

// Auto selects colons, slashes and bars, or dots in a key without any of them.
const Auto = "auto"

const (
	maxPart = 64 // bytes of a part; the name of a longer one is lost
	// MaxDepth is the maximum number of parts of a path.
	MaxDepth = 16
	minHex   = 8 // digits of a hexadecimal number
)

// KeyPath is the place of a key in the tree of prefixes: its parts, each after two bytes, the lengths of its name and
// of the delimiter that ends it. Names have # for numbers, hexadecimal numbers, UUIDs and dates.
type KeyPath []byte

// Next cuts the first part from a path.
func (p KeyPath) Next() (part, rest KeyPath) {
	n := 2 + int(p[0]) + int(p[1])
	return p[:n], p[n:]
}

// IsPart reports whether a path is a single part.
func (p KeyPath) IsPart() bool { return len(p) >= 2 && len(p) == 2+int(p[0])+int(p[1]) }

// Text returns the name of a part with its delimiter.
func (p KeyPath) Text() []byte { return p[2:] }

// The kinds of parts: Tails end keys.
const (
	dirs = iota
	tails
)

// Kind returns the kind of a part.
func (p KeyPath) Kind() int {
	if p.Tail() {
		return tails
	}
	return dirs
}

// Tail reports whether a part ends its key.
func (p KeyPath) Tail() bool { return p[1] == 0 }

// Starred returns the part with the same delimiter and the name *.
func (p KeyPath) Starred() KeyPath {
	return append(KeyPath{1, p[1], '*'}, p[2+int(p[0]):]...)
}

// The classes of bytes in keys.
const (
	isDigit = 1 << iota
	isHex
	isWord
	isStrong // a delimiter
	isDot
)

var classes = func() (of [256]byte) {
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9':
			of[c] = isDigit | isHex | isWord
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			of[c] = isHex | isWord
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			of[c] = isWord
		case c == ':' || c == '/' || c == '|':
			of[c] = isStrong
		case c == '.':
			of[c] = isDot
		}
	}
	return of
}()

// KeyShaper finds the paths of keys.
type KeyShaper struct {
	Delimiter string // Auto, or up to 255 bytes of text; "": keys have no parts
	Depth     int    // maximum number of parts of a path
	// crowded are the paths below which all parts of a kind have one name. Their keys end with the kind.
	Crowded map[string]bool
	Path    KeyPath
	Folded  []byte // of each byte of the key: 0, or isDigit or isHex if it belongs to a #
	Stars   bool   // a part of the path has lost its name
}

// Find sets path, folded and stars. The path depends only on the key and on Crowded.
func (s *KeyShaper) Find(key []byte) {
	s.Path, s.Stars = s.Path[:0], false
	s.Folded = append(s.Folded[:0], make([]byte, len(key))...)
	mask := s.Mask(key)
	for at, n := 0, 0; at < len(key) && n < s.Depth; n++ {
		name, delimiter := s.Cut(key[at:], mask)
		start := len(s.Path)
		s.Path = append(s.Path, 0, byte(delimiter))
		if name > maxPart || len(s.Crowded) > 0 && s.isCrowded(start, delimiter == 0) {
			s.Path, s.Stars = append(s.Path, '*'), true
		} else {
			s.name(key[at:at+name], s.Folded[at:])
		}
		s.Path[start] = byte(len(s.Path) - start - 2)
		s.Path = append(s.Path, key[at+name:at+name+delimiter]...)
		at += name + delimiter
	}
}

// Mask returns the class of the delimiters of a key.
func (s *KeyShaper) Mask(key []byte) byte {
	if s.Delimiter == Auto && !hasClass(key, isStrong) {
		return isDot
	}
	return isStrong
}

func hasClass(key []byte, class byte) bool {
	for _, c := range key {
		if classes[c]&class != 0 {
			return true
		}
	}
	return false
}

// Cut returns the lengths of the first name in a key and of the delimiter after it.
func (s *KeyShaper) Cut(key []byte, mask byte) (name, delimiter int) {
	if s.Delimiter != Auto {
		for ; name+len(s.Delimiter) <= len(key); name++ {
			if string(key[name:name+len(s.Delimiter)]) == s.Delimiter {
				return name, len(s.Delimiter)
			}
		}
		return len(key), 0
	}
	for i, c := range key {
		if classes[c]&mask != 0 {
			return i, 1
		}
	}
	return len(key), 0
}

// isCrowded reports whether the part that starts here has lost its name.
func (s *KeyShaper) isCrowded(start int, tail bool) bool {
	s.Path[start] = dirs
	if tail {
		s.Path[start] = tails
	}
	return s.Crowded[string(s.Path[:start+1])]
}

// name appends a name.
func (s *KeyShaper) name(name, folded []byte) {
	from := len(s.Path)
	for i := 0; i < len(name); {
		if classes[name[i]]&isWord == 0 {
			s.Path = append(s.Path, name[i])
			i++
			continue
		}
		n, all := word(name[i:])
		switch {
		case isUUID(name[i:]):
			n = uuidLen
			fallthrough
		case all&(isHex|isDigit) == isHex && n >= minHex:
			for j := i; j < i+n; j++ {
				folded[j] = classes[name[j]] & isHex
			}
			s.number(from)
		default:
			s.digits(name[i:i+n], folded[i:], from)
		}
		i += n
	}
}

// digits appends a word with its runs of digits as numbers.
func (s *KeyShaper) digits(word, folded []byte, from int) {
	for i, c := range word {
		folded[i] = classes[c] & isDigit
		switch {
		case folded[i] == 0:
			s.Path = append(s.Path, c)
		case i == 0 || folded[i-1] == 0:
			s.number(from)
		}
	}
}

// number appends # to the name that starts at from. Numbers joined by a dash are one, like a date.
func (s *KeyShaper) number(from int) {
	if n := len(s.Path); n-from >= 2 && s.Path[n-1] == '-' && s.Path[n-2] == '#' {
		s.Path = s.Path[:n-1]
	} else {
		s.Path = append(s.Path, '#')
	}
}

// word returns the length of the word at the start of b, and the classes that all of its bytes have.
func word(b []byte) (n int, all byte) {
	all = isHex | isDigit | isWord
	for n < len(b) && classes[b[n]]&isWord != 0 {
		all &= classes[b[n]]
		n++
	}
	return n, all
}

const uuidLen = 36

// isUUID reports whether b starts with a UUID.
func isUUID(b []byte) bool {
	if len(b) < uuidLen || b[8] != '-' || len(b) > uuidLen && classes[b[uuidLen]]&isWord != 0 {
		return false
	}
	for i, c := range b[:uuidLen] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && c != '-' || !dash && classes[c]&isHex == 0 {
			return false
		}
	}
	return true
}

// KeyTemplate recognizes keys with the same path as another key: where that has a folded digit, they have one, too, and
// elsewhere the same byte. It compares eight bytes at a time.
type KeyTemplate struct {
	n                          int // length of the keys
	value, literal, digit, hex [maxKey / 8]uint64
}

// hasTemplates reports whether keys with a delimiter can have templates. They cannot if it has letters or digits.
func hasTemplates(delimiter string) bool {
	return delimiter == Auto || !hasClass([]byte(delimiter), isWord)
}

// maxKey is the length of keys that a template can recognize.
const maxKey = 64

// Set makes a template of the Shaper's last key.
func (t *KeyTemplate) Set(key, folded []byte) {
	*t = KeyTemplate{n: len(key)}
	var masks [3][maxKey]byte
	for i, f := range folded {
		masks[f][i] = 0xff // 0, isDigit or isHex
	}
	for w := range (len(key) + 7) / 8 {
		t.value[w], t.literal[w] = load(key, w), load(masks[0][:len(key)], w)
		t.digit[w], t.hex[w] = load(masks[isDigit][:len(key)], w), load(masks[isHex][:len(key)], w)
	}
}

// load returns eight bytes of a key: the last ones overlap those before.
func load(key []byte, word int) uint64 {
	if len(key) >= 8 {
		return binary.LittleEndian.Uint64(key[min(8*word, len(key)-8):])
	}
	var b [8]byte
	copy(b[:], key)
	return binary.LittleEndian.Uint64(b[:])
}

// Matches reports whether a key matches, of which the words before this one are known to.
func (t *KeyTemplate) Matches(key []byte, word int) bool {
	if len(key) != t.n {
		return false
	}
	for ; word < (t.n+7)/8; word++ {
		x := load(key, word)
		if (x^t.value[word])&t.literal[word] != 0 || !digits(x, t.digit[word]) || t.hex[word] != 0 && !hexDigits(x, t.hex[word]) {
			return false
		}
	}
	return true
}

// Run returns the number of first keys that match, of which the words before this one are known to.
func (t *KeyTemplate) Run(keys [][]byte, word int) (n int) {
	last := (t.n - 1) / 8
	if word < last || t.n < 8 || t.hex[last] != 0 {
		for n < len(keys) && t.Matches(keys[n], word) {
			n++
		}
		return n
	}
	value, literal, digit := t.value[last], t.literal[last], t.digit[last]
	for n < len(keys) && len(keys[n]) == t.n {
		x := binary.LittleEndian.Uint64(keys[n][t.n-8:])
		if (x^value)&literal != 0 || !digits(x, digit) {
			break
		}
		n++
	}
	return n
}

const (
	ones = 0x0101010101010101
	tops = 0x80 * ones
)

// digits reports whether the bytes of x under a mask are digits.
func digits(x, mask uint64) bool {
	x &= mask
	return ((x^'0'*ones)|((x+6*ones)^'0'*ones))&(0xf0*ones)&mask == 0
}

// hexDigits reports whether the bytes of x under a mask are hexadecimal digits.
func hexDigits(x, mask uint64) bool {
	if x &= mask; x&tops != 0 {
		return false
	}
	return (within(x, '0', '9')|within(x|0x20*ones, 'a', 'f'))&mask == tops&mask
}

// within has the top bit of each byte of x from lo to hi. The bytes of x are below 128.
func within(x uint64, lo, hi uint64) uint64 {
	return (x + (0x80-lo)*ones) &^ (x + (0x7f-hi)*ones) & tops
}
