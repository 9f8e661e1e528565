package catalog_test

import (
	"bytes"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// TestGets looks up the strings and elements of each golden database without a pass: what is found is what a pass reads. Many
// lookups must be answered, none for a name of an earlier type.
func TestGets(t *testing.T) {
	for _, name := range fixtures.Names() {
		if name == "rocks-modern" || name == "nemo-basic-zlib" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := openWith(t, fixtures.Unpack(t, name), &store.Hot{Max: 128 << 20})
			g, ok := format.As[format.Getter](src)
			if !ok {
				t.Skip("it answers no lookups")
			}
			asked, answered := 0, 0
			for _, db := range src.Databases() {
				c := getter{t: t, Getter: g, first: map[string]record.Type{}}
				c.l = record.Lookup{DB: db, Now: fixtures.Clock.UnixMilli()}
				c.check(src, db)
				asked, answered = asked+c.asked, answered+c.answered
			}
			name := src.Format().Name()
			if asked > 0 && answered < asked/6 && name != "ssdb" && name != "keydbflash" {
				t.Errorf("%d of %d lookups were answered", answered, asked)
			}
		})
	}
}

// getter checks the lookups in a database.
type getter struct {
	format.Getter
	t               *testing.T
	l               record.Lookup
	first           map[string]record.Type // type of the first record of each name
	asked, answered int
}

// check compares the records that a pass reads.
func (g *getter) check(src format.Source, db string) {
	env := &format.Env{Now: fixtures.Clock, TempDir: g.t.TempDir()}
	r := formattest.RecordsOf(g.t, src, db, src.Types(db), format.Span{}, env)
	for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
		if err != nil {
			g.t.Fatal(err)
		}
		key, typ := bytes.Clone(h.Key), h.Type
		if _, again := g.first[string(key)]; !again {
			g.first[string(key)] = typ
		}
		alive := !h.Expired && h.Keyless == record.Keyed
		var elems [32]record.Element
		n, err := r.Read(elems[:])
		if err != nil && err != io.EOF {
			g.t.Fatal(err)
		}
		for i := range elems[:n] {
			e := &elems[i]
			g.compare(key, typ, e, alive && (e.ExpireMS == 0 || e.ExpireMS >= g.l.Now))
		}
		g.none(key, typ)
	}
	if err := r.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.none([]byte("no key of any golden"), 0)
}

// compare looks up an element, which must be found, or else left to a pass.
func (g *getter) compare(key []byte, typ record.Type, want *record.Element, alive bool) {
	g.l.Key, g.l.Type, g.l.Name = key, typ, want.Name
	ok := g.Get(&g.l)
	seeks := typ == record.String || typ == record.Hash || typ == record.Set || typ == record.ZSet
	if seeks && alive && g.first[string(key)] == typ {
		g.asked++
	}
	if !ok {
		return
	}
	g.answered++
	e := &g.l.Elem
	equal := bytes.Equal(e.Value, want.Value) && bytes.Equal(e.Name, want.Name) && e.Score == want.Score &&
		e.ExpireMS == want.ExpireMS
	if !alive || g.first[string(key)] != typ || !g.l.Found || !equal {
		g.t.Errorf("%s %q, %q: found %t %q, score %v; want %q, score %v, alive %t, first of its name %s", typ, key, want.Name,
			g.l.Found, e.Value, e.Score, want.Value, want.Score, alive, g.first[string(key)])
	}
}

// none looks up what does not exist: an element, the key as another type, and a longer key.
func (g *getter) none(key []byte, typ record.Type) {
	g.l.Name = []byte("no such element of any golden")
	for _, t := range []record.Type{record.String, record.Hash, record.Set, record.ZSet} {
		g.l.Key, g.l.Type = key, t
		if g.Get(&g.l) && (g.l.Found && t != record.String || g.l.Exists != (t == typ) && g.first[string(key)] != t) {
			g.t.Errorf("%s %q, looked up as a %s: exists %t, found %t", typ, key, t, g.l.Exists, g.l.Found)
		}
		g.l.Key = append(bytes.Clone(key), "\x00no such key"...)
		if g.Get(&g.l) && g.l.Exists {
			g.t.Errorf("%q, looked up as a %s: it exists", g.l.Key, t)
		}
	}
}
