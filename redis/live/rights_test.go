package live

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// rights parses the permissions in the documentation.
func rights(t *testing.T, use string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/live.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n\\* " + regexp.QuoteMeta(use) + ": [^`]*`([^`]*)`").FindSubmatch(page)
	if m == nil {
		t.Fatalf("docs/live.md has no rights of a %s", use)
	}
	return strings.Fields(string(m[1]))
}

// TestRights: a user with exactly the documented permissions can do the documented tasks.
func TestRights(t *testing.T) {
	one := redistest.Start(t, undelayed...)
	nodes := redistest.StartCluster(t)
	for _, cluster := range []bool{false, true} {
		servers, address := []*redistest.Server{one}, "redis://user@"+one.Addr
		if cluster {
			servers, address = nodes, "redis+cluster://user@"+nodes[0].Addr
		}
		allow := func(uses ...string) {
			t.Helper()
			if cluster {
				uses = append(uses, "in a cluster, in addition")
			}
			for _, s := range servers {
				s.Client().Must(t, "ACL", "SETUSER", "user", "reset", "on", ">pw")
				for _, use := range uses {
					for _, right := range rights(t, use) {
						_, err := s.Client().Do("ACL", "SETUSER", "user", right)
						if err != nil && right != "+hpexpireat" { // an older server
							t.Fatalf("%s: %v", right, err)
						}
					}
				}
			}
		}
		flush := func() {
			for _, s := range servers {
				s.Client().Must(t, "FLUSHALL")
				s.Client().Must(t, "FUNCTION", "FLUSH")
			}
		}
		holds := func() map[string]string {
			all := map[string]string{}
			for _, s := range servers {
				maps.Copy(all, s.Client().Records(t))
			}
			return all
		}
		list := append(data(100, 21000), function(library))
		expected := want(t, list[:100], "0")
		allow("target")
		for _, existing := range []format.Existing{format.FailExisting, format.SkipExisting, format.Replace} {
			for _, restore := range []bool{true, false} {
				if existing == format.FailExisting {
					flush()
				}
				o := format.ServerOptions{Password: "pw", Existing: existing}
				text := look(t, mustOpen(t, address, o, "0"), list, "0")
				tg := mustOpen(t, address, o, "0").(*target)
				tg.server.Restore = tg.server.Restore && restore
				if err := load(context.Background(), tg, list, "0", 1); err != nil || text != "" && text != "nobody asks" {
					t.Errorf("cluster %v, %v, RESTORE %v: %q, %v", cluster, existing, restore, text, err)
				}
				if _, err := tg.Check(context.Background(), nil, nil); err != nil {
					t.Error(err)
				}
				diff(t, expected, holds())
			}
		}
		allow("target", "target with `--resume`")
		begun := mustOpen(t, address, format.ServerOptions{Password: "pw", Existing: format.Replace}, "0")
		again, err := New().With(&format.ServerOptions{Password: "pw", Existing: format.Replace}).Create(context.Background(),
			address, &format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir(), Earlier: begun.(format.Loaded).Earlier()})
		if err != nil {
			t.Errorf("cluster %v: resuming: %v", cluster, err)
		} else {
			again.Abort()
		}
		for use, o := range map[string]format.ServerOptions{"source, as a replica": {Password: "pw"},
			"source, key by key": {Password: "pw", Scan: true}} {
			allow(use)
			src, found, err := source(t, address, o)
			if err != nil || len(found) > 0 {
				t.Errorf("cluster %v, %s: %v, findings %v", cluster, use, err, found)
				continue
			}
			got := contents(t, src)
			delete(got, "0/FUNCTION lib1")
			diff(t, expected, got)
		}
		allow("target", "target of `patch`")
		w, err := mustOpen(t, address, format.ServerOptions{Password: "pw", Existing: format.Replace}, "0").Shard(0, "0",
			record.AllTypes, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		c := w.(format.Changer)
		key, lib := list[3].h, list[100].h
		if err := errors.Join(c.Expire(key.Key, 0), c.Expire(key.Key, 4102444800001), c.Delete(&key), c.Delete(&lib),
			w.Close()); err != nil {
			t.Errorf("cluster %v: a patch: %v", cluster, err)
		}
		allow("source, key by key")
		_, err = open(t, address, format.ServerOptions{Password: "pw"}, "0")
		if err == nil {
			err = load(context.Background(), mustOpen(t, address, format.ServerOptions{Password: "pw", Existing: format.Replace},
				"0"), list[:1], "0", 1)
		}
		if err == nil || !strings.Contains(err.Error(), "kvferry help live") {
			t.Errorf("cluster %v: no rights: %v", cluster, err)
		}
	}
	if all := rights(t, "target"); !slices.Contains(all, "+restore") || len(all) < 20 {
		t.Errorf("%q", all)
	}
}
