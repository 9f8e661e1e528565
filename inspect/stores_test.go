package inspect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// opened opens tables at a directory like a source and returns the only keyspace.
func opened(t *testing.T, s *Stores, dir string, o *store.Options) (store.Store, store.Keyspace) {
	t.Helper()
	st := &fake.Tables{Listed: []store.File{{Path: "1.sst", Size: 10}, {Path: "2.log", Size: 5}}}
	open := s.Opener(func(_ context.Context, _ string, o *store.Options) (store.Store, error) {
		st.Report = o.Report
		return st, nil
	})
	out, err := open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if st.Report != nil {
		st.Report(record.Finding{Place: record.Place{File: "1.sst"}})
		st.Report(record.Finding{Place: record.Place{File: filepath.Join(dir, "2.log")}})
		st.Report(record.Finding{})
	}
	return out, out.Keyspaces()[0]
}

// TestStoresNameFiles checks that file names are relative to the dataset, whatever form a store uses.
func TestStoresNameFiles(t *testing.T) {
	s := &Stores{Root: "/data"}
	var files []string
	one, ks := opened(t, s, "/data/hash", &store.Options{Report: func(f record.Finding) { files = append(files, f.Place.File) }})
	if len(files) != 3 || files[0] != "hash/1.sst" || files[1] != "hash/2.log" || files[2] != "" {
		t.Errorf("findings name %q", files)
	}
	src := fake.New()
	src.Spaces = []format.Keyspace{{DB: "0", Name: "hash/default", Keyspace: s.All()[0].Keyspaces()[0]}}
	if n, bytes := s.Files(); n != 2 || bytes != 15 || ks == nil {
		t.Errorf("%d files of %d bytes", n, bytes)
	}
	if got := s.Names(src).Of("0", "derived", "1.sst"); got != "hash/1.sst" {
		t.Errorf("of the only store: %s", got)
	}
	two, _ := opened(t, s, "/data/kv", &store.Options{})
	for _, c := range []struct{ keyspace, file, want string }{
		{"derived", "1.sst", "1.sst"}, {"derived", "/else/1.sst", "/else/1.sst"}, {"derived", "/data/kv/1.sst", "kv/1.sst"},
	} {
		if got := s.Names(src).Of("0", c.keyspace, c.file); got != c.want {
			t.Errorf("%s in %s is named %s, want %s", c.file, c.keyspace, got, c.want)
		}
	}
	if got := (*Stores)(nil).Names(src).Of("0", "x", "1.sst"); got != "1.sst" {
		t.Errorf("of no stores: %s", got)
	}
	for path, want := range map[string]string{"/data/kv/1.sst": "kv/1.sst", "/data": "/data", "/other": "/other"} {
		if got := s.File(path); got != want {
			t.Errorf("%s is named %s, want %s", path, got, want)
		}
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil || len(s.All()) != 0 {
		t.Errorf("closed: %d stores, %v", len(s.All()), err)
	}
	boom := errors.New("boom")
	failing := s.Opener(func(context.Context, string, *store.Options) (store.Store, error) { return nil, boom })
	if _, err := failing(context.Background(), "/data/x", &store.Options{}); !errors.Is(err, boom) || len(s.All()) != 0 {
		t.Errorf("a store that does not open: %v", err)
	}
}

// filed is a source with its own files.
type filed struct{ *fake.Source }

func (filed) Files() (int, int64) { return 7, 70 }

// TestNamedSource checks that findings about rows name files relative to the dataset.
func TestNamedSource(t *testing.T) {
	s := &Stores{Root: "/data"}
	opened(t, s, "/data/kv", &store.Options{})
	src := fake.New(fake.Rec(record.Set, "s", fake.Member("m")))
	src.Fail = func(_ *record.Header, e *format.Env) error {
		e.Report(record.Finding{Place: record.Place{File: "1.sst"}})
		return nil
	}
	var got []string
	scan := &Scan{Source: s.Named(src), Now: fake.Now, Report: func(f record.Finding) { got = append(got, f.Place.File) }}
	if _, err := Fingerprint(context.Background(), scan); err != nil || len(got) != 1 || got[0] != "kv/1.sst" {
		t.Errorf("findings name %q, %v", got, err)
	}
	if n, bytes := s.FilesOf(scan.Source); n != 2 || bytes != 15 {
		t.Errorf("%d files of %d bytes", n, bytes)
	}
	own := filed{src}
	if n, bytes := s.FilesOf(own); s.Named(own) != format.Source(own) || n != 7 || bytes != 70 {
		t.Errorf("of its own: %d files of %d bytes", n, bytes)
	}
}

// TestOwners checks the database and name of each keyspace.
func TestOwners(t *testing.T) {
	st := &fake.Tables{}
	ks := st.Keyspaces()[0]
	src := fake.New()
	src.Spaces = []format.Keyspace{{DB: "3", Name: "kv", Keyspace: ks}}
	if of := Owners(src)[ks]; of != (Owner{"3", "kv"}) {
		t.Errorf("%+v", of)
	}
}

// TestUnreadable checks that a damaged directory can be verified, but not a missing one or one in use.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"tables/1.sst", "logs/1.log", "manifest/MANIFEST-000001", "identity/IDENTITY", "notes/readme.txt"} {
		write(name)
	}
	corrupt := errors.New("checksum")
	for _, c := range []struct {
		dir  string
		err  error
		want bool
	}{
		{"tables", store.ErrNotStore, true}, {"logs", store.ErrNotStore, true}, {"manifest", store.ErrNotStore, true},
		{"identity", store.ErrNotStore, true}, {"notes", store.ErrNotStore, false}, {"none", store.ErrNotStore, false},
		{"none", corrupt, false}, {"notes", corrupt, true}, {"tables", &store.LiveError{}, false},
		{"tables", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, false}, {"tables/1.sst", store.ErrNotStore, true},
	} {
		if got := Unreadable(filepath.Join(dir, c.dir), c.err); got != c.want {
			t.Errorf("%s, %v: %v", c.dir, c.err, got)
		}
	}
}

// TestPlacedAtAddress: the place of a finding in an object store is its address.
func TestPlacedAtAddress(t *testing.T) {
	const address = "s3://data/dump.rdb"
	defer disk.Mount("s3://data", address, struct{ disk.FS }{})()
	if got := Placed("", address); got != address {
		t.Errorf("placed at %s", got)
	}
}
