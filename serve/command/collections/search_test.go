package collections_test

import (
	"iter"
	"testing"

	"kvferry/serve/command/fake"
)

// TestSearches: what a server cannot be asked, or answers in any order.
func TestSearches(t *testing.T) {
	const sicily = "zset g Palermo=3479099956230698 Catania=3479447370796909 far=1e300 near=3479447370796909"
	s, _ := fake.New(t, sicily, "list l 3 1 2 2", "set s b a", "zset z a=2 b=1", "string w1 x", "string w2 y", "hash h1 f=7", "hash h2 f=5", "string t text", "stream x")
	c := fake.NewCaller(t, s)
	for _, tt := range []struct{ line, want string }{
		{"GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km", `*3[$"Palermo" $"Catania" $"near"]`},
		{"GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 ANY", `*1[$"Palermo"]`},
		{"GEOSEARCH g FROMLONLAT 15 37 BYBOX 300 300 km ASC COUNT 1 WITHDIST WITHHASH", `*1[*3[$"Catania" $"56.4413" :"3479447370796909"]]`},
		{"GEORADIUS g 15 37 200 km DESC COUNT 1", `*1[$"Palermo"]`},
		{"GEORADIUS g 15 37 200 km STORE x", `-"READONLY You can't write against a read only replica."`},
		{"GEORADIUS_RO g 15 37 200 km STORE x", `-"ERR syntax error"`},
		{"GEORADIUSBYMEMBER_RO g Palermo 1 km WITHCOORD", `*1[*2[$"Palermo" *2[$"13.36138933897018433" $"38.11555639549629859"]]]`},
		{"GEOHASH g Palermo none", `*2[$"sqc8b49rny0" $"-1"]`}, {"GEODIST g Palermo Catania km", `$"166.2742"`}, {"GEOPOS g none", `*1[*"-1"]`},
		{"SORT l", `*4[$"1" $"2" $"2" $"3"]`}, {"SORT l DESC LIMIT 1 2", `*2[$"2" $"2"]`}, {"SORT l BY nosort DESC", `*4[$"2" $"2" $"1" $"3"]`},
		{"SORT s ALPHA", `*2[$"a" $"b"]`}, {"SORT s BY nosort", `*2[$"b" $"a"]`}, {"SORT z BY nosort DESC", `*2[$"a" $"b"]`}, {"SORT z", `-"ERR One or more scores can't be converted into double"`},
		{"SORT l BY h*->f GET # GET w* GET t", `*12[$"3" $"-1" $"-1" $"2" $"y" $"-1" $"2" $"y" $"-1" $"1" $"x" $"-1"]`},
		{"SORT l BY w* ALPHA DESC", `*4[$"2" $"2" $"1" $"3"]`}, {"SORT l GET h*", `*4[$"-1" $"-1" $"-1" $"-1"]`},
		{"SORT l STORE x", `-"READONLY You can't write against a read only replica."`}, {"SORT_RO l STORE x", `-"ERR syntax error"`}, {"SORT t", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"BITFIELD_RO t OVERFLOW SAT GET u8 0", `*1[:"116"]`}, {"BITFIELD_RO t OVERFLOW x GET u8 0", `-"ERR Invalid OVERFLOW type specified"`},
		{"BITFIELD_RO t SET u8 0 1 GET u8 0", `-"ERR BITFIELD_RO only supports the GET subcommand"`}, {"BITFIELD_RO t SET u8 0 x", `-"ERR value is not an integer or out of range"`},
		{"BITFIELD_RO t SET u8 0", `-"ERR syntax error"`}, {"SORT none", `*"0"`},
		{"SSCAN s 9223372036854775807 COUNT 0", `-"ERR syntax error"`}, {"SSCAN none 9223372036854775807 COUNT 0", `*2[$"0" *"0"]`}, {"SORT x", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
	} {
		if got := c.Do(tt.line).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
}

// TestEdgeOfTheMap: members at longitude 180 and latitude 85.05112878, whose scores have bit 52, and scores that are no
// places are found where Redis finds them: the replies are those of Redis 7.0.
func TestEdgeOfTheMap(t *testing.T) {
	s, _ := fake.New(t, "zset p sw=0 x=3386427883058495 nw=4503599627370496 n=6755399441055744 se=9007199254740992 e=10133099161583616 ne=13510798882111488 minus=-1 far=1e300")
	c := fake.NewCaller(t, s)
	c.Check(
		"GEOPOS p ne se far", `*3[*2[$"180" $"85.0511287799999991"] *2[$"180" $"-85.05112751263942528"] *2[$"-179.99999731779098511" $"-85.05112751263942528"]]`,
		"GEOSEARCH p FROMMEMBER ne BYRADIUS 1 m", `*1[$"ne"]`,
		"GEOSEARCH p FROMMEMBER e BYRADIUS 1000 km WITHDIST", `*1[*2[$"e" $"0.0000"]]`,
		"GEOSEARCH p FROMMEMBER n BYRADIUS 1000 km", `*1[$"n"]`,
		"GEOSEARCH p FROMLONLAT 179.9 0 BYRADIUS 1000 km", `*"0"`,
		"GEOSEARCH p FROMLONLAT 180 0 BYRADIUS 100 km WITHDIST", `*1[*2[$"e" $"0.0001"]]`,
		"GEOSEARCH p FROMLONLAT -180 0 BYRADIUS 1000 km", `*"0"`,
		"GEOSEARCH p FROMLONLAT 179.9 85 BYBOX 1000 1000 km", `*"0"`,
		"GEOSEARCH p FROMLONLAT 0 0 BYRADIUS 30000 km ASC", `*2[$"x" $"sw"]`,
		"GEORADIUS p 180 85.05112878 100 km WITHCOORD", `*1[*2[$"ne" *2[$"180" $"85.0511287799999991"]]]`,
		"GEOSEARCH p FROMMEMBER far BYRADIUS 1 km", `*1[$"sw"]`)
}

// TestSortOfANode: a node of a cluster refuses patterns of keys that it may not have, and looks up the others.
func TestSortOfANode(t *testing.T) {
	s, _ := fake.New(t, "list l 3 1 2", "string {l}1 9", "string {l}2 8", "string {l}3 7", "string w1 9", "hash {l}h3 f=x")
	s.Route = func(iter.Seq[[]byte]) error { return nil }
	c := fake.NewCaller(t, s)
	const by, get = `-"ERR BY option of SORT denied in Cluster mode."`, `-"ERR GET option of SORT denied in Cluster mode."`
	for _, tt := range []struct{ line, want string }{
		{"SORT l BY w*", by}, {"SORT_RO l BY w*->f", by}, {"SORT l BY {w}*", by}, {"SORT l BY {l*}", by}, {"SORT l BY *{l}", by}, {"SORT l BY {}{l}*", by}, {"SORT l BY l*", by},
		{"SORT l BY nosort GET w*", get}, {"SORT_RO l GET # GET w*", get}, {"SORT l GET w", get}, {"SORT l GET #*", get}, {"SORT l BY {l}* GET {w}*->f", get},
		{"SORT l BY {l}* GET #", `*3[$"3" $"2" $"1"]`}, {"SORT l GET {l}* GET {l}h*->f", `*6[$"9" $"-1" $"8" $"-1" $"7" $"x"]`},
		{"SORT l BY w GET #", `*3[$"3" $"1" $"2"]`}, {"SORT l", `*3[$"1" $"2" $"3"]`},
	} {
		if got := c.Do(tt.line).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
}
