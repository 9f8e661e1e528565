package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/live/server"
)

// TestDecided: a writer that skips existing keys reports each record once, small and large, and so does the looker of a
// dry run. A writer that overwrites reports none.
func TestDecided(t *testing.T) {
	s := redistest.Start(t)
	address, list := "redis://"+s.Addr, data(700, 21000)
	list = append(list, function(library))
	for i := range list {
		if i%3 == 0 && i < 700 {
			s.Client().Must(t, "SET", string(list[i].h.Key), "mine")
		}
	}
	s.Client().Must(t, "FUNCTION", "LOAD", strings.Replace(library, "return 1", "return 2", 1))
	for _, dry := range []bool{true, false} {
		for _, existing := range []format.Existing{format.Replace, format.SkipExisting} {
			target := mustOpen(t, address, format.ServerOptions{Existing: existing}, "0")
			open := func() (record.Writer, error) { return target.Shard(int(shard.Add(1)), "0", record.AllTypes, 64<<20) }
			if dry {
				open = func() (record.Writer, error) { return target.(format.Loaded).Look("0", true) }
			} else if existing == format.Replace {
				continue // it would write
			}
			w, err := open()
			if err != nil {
				t.Fatal(err)
			}
			told := map[int64]string{}
			if w == nil || !w.(format.Sparing).OnDecided(func(n int64, skipped bool) { told[n] += fmt.Sprint(skipped) }) {
				if existing == format.SkipExisting {
					t.Error("nothing will be left alone")
				}
				continue
			}
			one := &formattest.OneByOne{Writer: w}
			for i := range list {
				if err := one.Begin(&list[i].h); err != nil {
					t.Fatal(err)
				}
				if err := one.Write(list[i].elems); err != nil {
					t.Fatal(err)
				}
				if err := one.End(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for i := range list {
				if want := fmt.Sprint(i%3 == 0 || i == 700); told[int64(i)] != want {
					t.Errorf("dry %t: record %d, %s: %q, want %s", dry, i, list[i].h.Type, told[int64(i)], want)
				}
			}
			if !dry {
				if err := target.(format.Loaded).Conflicts(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestAskedInVain: an unreachable server is a LostError when asked for existing keys; a refusal is not.
func TestAskedInVain(t *testing.T) {
	for answer, want := range map[string]bool{"-CLUSTERDOWN The cluster is down\r\n": true, "-NOPERM no\r\n": false, "": true,
		":0\r\n": false} {
		addr := redistest.Serve(t, func(words []string) string {
			if words[0] == "EXISTS" || words[0] == "FUNCTION" {
				return answer
			}
			return answerInfo(words, "")
		})
		o, err := server.NewOptions("redis://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &server.Server{Options: o}
		a := &asker{ctx: t.Context(), server: s, router: s.Router("0")}
		defer a.router.Close()
		var lost *format.LostError
		if _, err := a.there([][]byte{[]byte("k")}); errors.As(err, &lost) != want || err == nil && answer[0] != ':' {
			t.Errorf("%q: %v", answer, err)
		}
		a.held = []whole{{key: []byte("k")}}
		for range 2 {
			if answer == "-NOPERM no\r\n" && a.release() == nil {
				t.Error("a record is lost that was not decided")
			}
		}
	}
}
