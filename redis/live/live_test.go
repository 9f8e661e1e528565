package live

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/live/server"
)

// TestFormat: the format is found by its addresses alone.
func TestFormat(t *testing.T) {
	if work, err := New().Work("redis://h:7"); err != nil || work != "redis-h-7" {
		t.Errorf("%s, %v", work, err)
	}
	if _, err := New().Work("redis://"); err == nil {
		t.Error("no address has a name")
	}
	if !server.IsAddress("unix:///x") || New().Detect(nil).Score != 0 || New().Name() != Name ||
		New().Limits().Place != format.OnServer {
		t.Error("what is no address")
	}
}

// TestLosses: the losses depend on the server's version, and payloads have the newest version that it reads.
func TestLosses(t *testing.T) {
	for _, x := range []struct {
		valkey       bool
		major, minor int
		payload      string
		set          bool // strings with an expiry go as SET
		losses       string
	}{
		{false, 2, 8, "6", false, "module stream group-progress field-expiry"}, {false, 4, 0, "8", false, "module stream group-progress field-expiry"}, {false, 6, 0, "9", false, "module group-progress group-progress field-expiry"},
		{false, 6, 2, "9", true, "module group-progress group-progress field-expiry"}, {false, 7, 0, "10", true, "field-expiry"}, {false, 7, 2, "11", true, "field-expiry"}, {false, 8, 0, "12", true, ""},
		{true, 8, 1, "11", true, "field-expiry"}, {true, 9, 0, "valkey80", true, ""},
	} {
		s := &server.Server{Major: x.major, Minor: x.minor, Valkey: x.valkey, Name: "it"}
		s.Version = s.Payloads()
		tg := &target{limits: newLimits(t.Context(), s, false)}
		var kinds []string
		for _, h := range []record.Header{{Type: record.Other, Key: []byte("FUNCTION f"), Keyless: record.Library},
			{Type: record.Stream, MaxDeleted: make([]byte, 16)}, {Type: record.Hash}} {
			for _, l := range tg.Losses(&h) {
				kinds = append(kinds, l.Kind)
			}
		}
		group := []record.Element{{Kind: record.Group, Name: []byte("g"),
			Value: record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: 7})}}
		tg.ElementLosses(&record.Header{Type: record.Stream, Added: 7}, group,
			func(l record.Loss) { kinds = append(kinds, l.Kind) })
		batch := []record.Element{{Name: []byte("f"), ExpireMS: 5}}
		tg.ElementLosses(&record.Header{Type: record.Hash}, batch, func(l record.Loss) {
			kinds = append(kinds, l.Kind)
			if !strings.HasPrefix(l.Detail, `field "f": `) {
				t.Errorf("%d.%d: %s", x.major, x.minor, l.Detail)
			}
		})
		orphans := int64(0) // only commands
		if x.major < 7 {
			orphans = -1
		}
		if got := tg.Orphans(); got != orphans {
			t.Errorf("%d.%d: streams of up to %d bytes keep pending entries without messages", x.major, x.minor, got)
		}
		if got := strings.Join(kinds, " "); got != x.losses || s.Version.String() != x.payload || s.Since(6, 2) != x.set {
			t.Errorf("%d.%d: payloads of %s, losses %q, SET %v; want %+v", x.major, x.minor, s.Version, got, s.Since(6, 2), x)
		}
	}
	tg := newLimits(t.Context(), &server.Server{Major: 8}, false)
	for _, h := range []record.Header{{Key: []byte("doc")}, {Key: []byte("FUNCTION doc")},
		{Key: []byte("MODULE_AUX doc"), Keyless: record.ModuleAux}} {
		h.Type = record.Other
		if l := tg.Losses(&h); len(l) != 1 || !l[0].Drops {
			t.Errorf("%s, which is of a module: %+v", h.Key, l)
		}
	}
	left := tg.ElementLosses(&record.Header{Type: record.ZSet},
		[]record.Element{{Name: []byte("a"), Score: math.NaN()}, {Name: []byte("b"), Score: 1}}, func(record.Loss) {})
	if len(left) != 1 || string(left[0].Name) != "b" {
		t.Errorf("%+v", left)
	}
}

// TestSpill: a record that outgrows one payload goes as commands, complete; keys are changed by a patch.
func TestSpill(t *testing.T) {
	s := redistest.Start(t)
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	h := record.Header{DB: "0", Type: record.List, Key: []byte("big"), Len: 17, ExpireMS: 4102444800000}
	if err := w.Begin(&h); err != nil {
		t.Fatal(err)
	}
	for i := range 17 {
		if err := w.Write([]record.Element{{Value: []byte(strings.Repeat(string(rune('a'+i)), 1<<20))}}); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Client()
	c.Must(t, "MSET", "old", "1", "keep", "2", "last", "3")
	c.Must(t, "PEXPIREAT", "last", "4102444800000")
	to := w.Writer.(format.Changer)
	for _, err := range []error{w.End(), to.Delete(&record.Header{Key: []byte("old")}),
		to.Delete(&record.Header{Key: []byte("none")}), to.Expire([]byte("keep"), 4102444800001), to.Expire([]byte("last"), 0), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var long []string
	for _, v := range c.Strings(t, "LRANGE", "big", "0", "-1") {
		if strings.Trim(v, v[:1]) == "" && len(v) == 1<<20 {
			long = append(long, v[:1])
		}
	}
	if got := strings.Join(long, ""); got != "abcdefghijklmnopq" {
		t.Errorf("the list is %s", got)
	}
	for key, want := range map[string]string{"big": "4102444800000", "keep": "4102444800001", "last": "-1", "old": "-2"} {
		if got := redistest.Text(c.Must(t, "PEXPIRETIME", key)); got != want {
			t.Errorf("%s expires at %s, want %s", key, got, want)
		}
	}
}

// TestDeleteNamesakes: a key and a function library of the same name are deleted separately.
func TestDeleteNamesakes(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	load := func(name string) {
		c.Must(t, "FUNCTION", "LOAD", "#!lua name="+name+"\nredis.register_function('f"+name+"', function() return 1 end)")
	}
	load("a")
	load("b")
	c.Must(t, "MSET", "FUNCTION a", "1", "FUNCTION b", "2", "MODULE_AUX c", "3", "MODULE_AUX d", "4")
	w, err := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0").Shard(0, "0", record.AllTypes, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []record.Header{
		{Type: record.Other, Key: []byte("FUNCTION a")},
		{Type: record.Other, Key: []byte("FUNCTION b"), Keyless: record.Library},
		{Type: record.Other, Key: []byte("MODULE_AUX c")},
		{Type: record.Other, Key: []byte("MODULE_AUX d"), Keyless: record.ModuleAux},
	} {
		if err := w.(format.Changer).Delete(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	keys := c.Strings(t, "KEYS", "*")
	slices.Sort(keys)
	if got := strings.Join(keys, ", "); got != "FUNCTION b, MODULE_AUX d" {
		t.Errorf("the keys that are left: %s", got)
	}
	if list := c.Must(t, "FUNCTION", "LIST").([]any); len(list) != 1 || redistest.Text(list[0].([]any)[1]) != "a" {
		t.Errorf("the libraries that are left: %v", list)
	}
}

// TestRestricted: a user without RESTORE writes commands, to a temporary name first; invalid records are rejected.
func TestRestricted(t *testing.T) {
	s := redistest.Start(t)
	s.Client().Must(t, "ACL", "SETUSER", "writer", "on", ">pw", "~*", "+@all", "-restore")
	address := "redis://writer@" + s.Addr
	o := format.ServerOptions{Password: "pw"}
	list := data(50, 200)
	if err := load(context.Background(), mustOpen(t, address, o, "0"), list, "0", 1); err != nil {
		t.Fatal(err)
	}
	diff(t, want(t, list, "0"), s.Client().Records(t))
	for want, dbs := range map[string][]string{"numbers its databases": {"users"}, "the address names database 3": {"0", "1"}} {
		if _, err := open(t, address+"/3", o, dbs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", dbs, err, want)
		}
	}
	if _, err := New().With(&o).Create(context.Background(), address,
		&format.CreateOptions{DBs: []string{"0"}, Earlier: "{"}); err == nil {
		t.Error("what an earlier process left is no JSON")
	}
	if _, err := New().With(&o).Create(context.Background(), "redis://", &format.CreateOptions{}); err == nil {
		t.Error("no address")
	}
	if _, err := New().With(&o).Open(context.Background(), "redis://", &format.OpenOptions{}); err == nil {
		t.Error("no address")
	}
}
