package live

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// TestRouter: commands follow their slots, wait for a busy cluster, and find the server that replaces a dead one.
func TestRouter(t *testing.T) {
	var asking atomic.Bool
	var tries atomic.Int32
	second := serve(t, func(words []string) string {
		switch {
		case words[0] == "ASKING":
			asking.Store(true)
			return "+OK\r\n"
		case words[1] == "asked" && !asking.Swap(false):
			return "-MOVED 1 elsewhere:1\r\n"
		}
		return bulk(words[1])
	})
	port := second[strings.LastIndex(second, ":"):]
	first := serve(t, func(words []string) string {
		switch words[1] {
		case "moved":
			return "-MOVED 1 " + second + "\r\n"
		case "asked": // a node that does not know its own address
			return "-ASK 1 " + port + "\r\n"
		case "busy":
			if tries.Add(1) < 3 {
				return "-TRYAGAIN\r\n"
			}
		case "refused":
			return "-ERR no\r\n"
		}
		return bulk(words[1])
	})
	dead := "127.0.0.1:1"
	located := 0
	o, err := newOptions("redis://"+first, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := (&server{options: o}).router("0")
	r.owner = func(key []byte) string {
		if string(key) == "dead" && located < 2 {
			return dead
		}
		return first
	}
	r.locate = func(context.Context) error { located++; return nil }
	defer r.close()
	var list []*keyed
	for _, key := range []string{"here", "moved", "asked", "busy", "dead", "refused"} {
		list = append(list, &keyed{key: []byte(key), name: "GET"})
	}
	if err := r.send(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		text, err := redis.String(k.reply, k.err)
		if want := string(k.key); want == "refused" && fmt.Sprint(err) != "ERR no" || want != "refused" && (text != want || err != nil) {
			t.Errorf("%s: %q, %v", k.key, text, err)
		}
	}
	if located < 2 || tries.Load() != 3 {
		t.Errorf("slots looked up %d times, %d tries", located, tries.Load())
	}
	r.locate = nil // a single server, which has no other in its place
	located = 0
	if _, err := r.do(t.Context(), []byte("dead"), "GET"); !isRefused(err) {
		t.Errorf("dead server: %v", err)
	}
}
