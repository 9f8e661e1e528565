package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/sys/object"
	"kvferry/internal/testkit/s3test"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// TestObjectsOfServer reads every golden from an S3 server: the fingerprints are those of the files on disk.
func TestObjectsOfServer(t *testing.T) {
	s := s3test.NewServer(t)
	for _, a := range fixtures.Archives(true) {
		t.Run(a.Name, func(t *testing.T) { sameInStore(t, a, s.PutTree) })
	}
}

// sameInStore compares what commands print of a golden on disk and in an object store.
func sameInStore(t *testing.T, a fixtures.Archive, put func(root string) string) {
	path, err := a.Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	samePrinted(t, path, put(path), [][]string{{"fingerprint"}, {"verify"}})
}

// samePrinted compares what commands print of a dataset on disk and at an address.
func samePrinted(t *testing.T, path, address string, commands [][]string) {
	t.Helper()
	for _, command := range commands {
		here := kvferry(t, slices.Insert(slices.Clone(command), 1, path)...)
		there := kvferry(t, slices.Insert(slices.Clone(command), 1, address)...)
		got := strings.ReplaceAll(there.stdout, address, path)
		if there.code != here.code || got != here.stdout || got == "" && here.code == cli.ExitOK {
			t.Errorf("%s: exit %d\n%s%s\non disk: exit %d\n%s", command, there.code, got, there.stderr, here.code, here.stdout)
		}
	}
}

// TestObjects reads goldens of different kinds with every reading command.
func TestObjects(t *testing.T) {
	f, dir := s3test.NewFake(t), t.TempDir()
	bw := golden(t, "bw-basic")
	sources := map[string]string{"directory": bw, "file": filepath.Join(dir, "dump.rdb"), "LMDB": golden(t, "ardb-lmdb-basic"),
		"log": filepath.Join(dir, "aof"), "Parquet": filepath.Join(dir, "export")}
	ok(t, "convert", "--on-conflict", "rename", bw, "aof:"+sources["log"])
	ok(t, "dump", "--format", "parquet", "-o", sources["Parquet"], bw)
	ok(t, "convert", "--on-conflict", "rename", bw, "rdb:"+sources["file"])
	web := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(sources["file"]))))
	defer web.Close()
	at := map[string]string{"web": web.URL + "/" + filepath.Base(sources["file"])}
	for name, path := range sources {
		at[name] = f.PutTree(t, path)
	}
	sources["web"] = sources["file"]
	for name, path := range sources {
		t.Run(name, func(t *testing.T) {
			samePrinted(t, path, at[name], [][]string{{"fingerprint"}, {"verify"}, {"inspect"}})
			if name == "directory" || name == "web" {
				samePrinted(t, path, at[name], [][]string{{"keys"}, {"dump"}, {"get", ""}})
			}
		})
	}
}

// TestObjectsConverted converts from an object store. A run that was broken off goes on only if no object changed, and
// diff finds the report of the conversion.
func TestObjectsConverted(t *testing.T) {
	f, dir := s3test.NewFake(t), fastDir(t)
	rdb := filepath.Join(dir, "set.rdb")
	ok(t, "convert", buildSmall(t, nemo.New(), convertedSet()...), "rdb:"+rdb, "--on-conflict", "rename")
	data, err := os.ReadFile(rdb)
	if err != nil {
		t.Fatal(err)
	}
	f.Put("d/set.rdb", data)
	from, dst := "s3://"+s3test.Bucket+"/d/set.rdb", filepath.Join(dir, "dst")
	args := []string{"convert", "--match", "[a-f]*", "--workers", "1", from, "pika3:" + dst}
	dies(t, errPulled, "sync MANIFEST-", dst, args)
	resume := slices.Insert(slices.Clone(args), 1, "--resume")
	f.Put("d/set.rdb", append(bytes.Clone(data), 0))
	if r := kvferry(t, resume...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "the source has changed: ") {
		t.Errorf("a changed object: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	f.Put("d/set.rdb", data)
	if out := ok(t, resume...); !strings.Contains(out, "resumed") {
		t.Errorf("it began again: %s", out)
	}
	if out := ok(t, "diff", from, dst); !strings.Contains(out, "explained by") {
		t.Errorf("the report is not found: %s", out)
	}
	ok(t, "diff", "--s3-endpoint", f.URL, "--as-converted", dst+".kvferry-report.json", from, dst)
	ok(t, "diff", rdb, "rdb:"+from)
	if out := ok(t, "plan", "--match", "[a-f]*", from, "pika3:"+dst+"2"); !strings.Contains(out, "upload the result") ||
		!strings.Contains(out, " rdb:./set.rdb.back\n") {
		t.Errorf("the way back of %s: %s", from, out)
	}
}

// TestObjectsTraffic: every run prints the requests and bytes of the object store, as the server counts them, and the
// report of a conversion has those until its proof.
func TestObjectsTraffic(t *testing.T) {
	f, dir := s3test.NewFake(t), fastDir(t)
	at := f.PutTree(t, golden(t, "nemo-basic"))
	counts := func(r result) (requests, sent int64) {
		t.Helper()
		line := r.stderr[strings.LastIndex(r.stderr, "kvferry: object store: "):]
		requests, sent = int64(len(f.Requests())), f.Sent()
		if !strings.HasPrefix(line, fmt.Sprintf("kvferry: object store: %s, ", record.Count(requests, "request"))) {
			t.Errorf("exit %d: %q, the server counts %d requests", r.code, line, requests)
		}
		return requests, sent
	}
	f.Requests()
	for _, args := range [][]string{{"fingerprint", at}, {"verify", at}, {"inspect", at}, {"get", at, "none"}, {"diff", at, at}} {
		counts(kvferry(t, args...))
	}
	dst := filepath.Join(dir, "dst")
	r := kvferry(t, "convert", at, "--on-conflict", "rename", "kvrocks:"+dst)
	requests, sent := counts(r)
	report, err := os.ReadFile(dst + ".kvferry-report.json")
	var got struct {
		Traffic object.Counts `json:"object_store"`
	}
	err = errors.Join(err, json.Unmarshal(report, &got))
	if err != nil || got.Traffic.Requests > requests || got.Traffic.Read < sent || got.Traffic.Requests == 0 ||
		got.Traffic.Written > 0 {
		t.Errorf("%+v of %d requests, %d bytes: %v", got, requests, sent, err)
	}
	t.Chdir(dir)
	if r := kvferry(t, "convert", at, "--on-conflict", "rename", "kvrocks:s3://data/new"); !strings.Contains(r.stderr, " written\n") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "fingerprint", dst); strings.Contains(r.stderr, "object store") {
		t.Errorf("of a local file: %s", r.stderr)
	}
}

// TestObjectsOnce counts the bytes that commands read with little memory: RDB files, logs that are one, and Parquet
// files come once; a lookup in Parquet files reads pages.
func TestObjectsOnce(t *testing.T) {
	f, dir := s3test.NewFake(t), fastDir(t)
	from := filepath.Join(dir, "nemo")
	target, err := nemo.New().Create(context.Background(), from,
		&format.CreateOptions{Create: build.Create, DBs: []string{"0"}, Memory: 1 << 20, Now: fixtures.Clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Mix(1, 300_000).Build(context.Background(), target, 1<<20); err != nil {
		t.Fatal(err)
	}
	to := func(name string) string { return filepath.Join(dir, name) }
	ok(t, "convert", from, "rdb:"+to("dump.rdb"), "--on-conflict", "rename")
	ok(t, "convert", from, "aof:"+to("log"), "--on-conflict", "rename")
	ok(t, "dump", "--format", "parquet", "-o", to("export"), from)
	for _, name := range []string{"dump.rdb", "log", "export"} {
		at := f.PutTree(t, to(name))
		size := int64(0)
		for _, key := range f.Keys() {
			if strings.HasPrefix(key, name) {
				size += int64(len(f.Object(key)))
			}
		}
		if size < 10<<20 {
			t.Fatalf("%s has only %d bytes: a cache may hold it", name, size)
		}
		for _, args := range [][]string{{"fingerprint"}, {"verify"}, {"inspect"}, {"dump", "-o", to("dump")},
			{"keys", "-o", to("keys")}, {"get", "-o", to("got")}, {"convert", "--discard"}} {
			command := args[0]
			args = append(args, "--memory", "64MiB", at)
			most := size + size/10
			switch {
			case command == "get":
				args = append(args, "account:hash:000000100")
				if name == "export" {
					most = 1 << 20
				}
			case command == "convert":
				args = append(args, "kvrocks:"+to(name+".new"))
			}
			f.Sent()
			ok(t, args...)
			if n := f.Sent(); n > most {
				t.Errorf("%s %s: %d bytes of %d", command, name, n, size)
			}
		}
		samePrinted(t, to(name), at, [][]string{{"fingerprint"}})
	}
}

// TestObjectsTogether opens many tables, and samples them to share them among workers: both request much together, not
// in one round trip after the other.
func TestObjectsTogether(t *testing.T) {
	f, dir := s3test.NewFake(t), filepath.Join(fastDir(t), "nemo")
	small := func(dir string, o store.BuildOptions) (store.Builder, error) {
		o.TableSize = 512 << 10
		return build.Create(dir, o)
	}
	target, err := nemo.New().Create(context.Background(), dir,
		&format.CreateOptions{Create: small, DBs: []string{"0"}, Memory: 1 << 20, Now: fixtures.Clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Mix(1, 300_000).Build(context.Background(), target, 1<<20); err != nil {
		t.Fatal(err)
	}
	at, unmount, err := object.Mount(t.Context(), f.PutTree(t, dir), object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer unmount()
	const n = 10
	var waiting [2]atomic.Int64
	var once [2]sync.Once
	all, late := [2]chan struct{}{make(chan struct{}), make(chan struct{})}, make(chan struct{})
	timer := time.AfterFunc(10*time.Second, func() { close(late) }) // the test fails
	defer timer.Stop()
	f.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		_, last, _ := strings.Cut(r.Header.Get("Range"), "-")
		key := strings.TrimPrefix(r.URL.Path, "/"+s3test.Bucket+"/")
		if r.Method != http.MethodGet || path.Ext(key) != ".sst" {
			return false
		}
		of := 0 // the end of a table, or else blocks
		if last != fmt.Sprint(len(f.Object(key))-1) {
			of = 1
		}
		if waiting[of].Add(1) == n {
			once[of].Do(func() { close(all[of]) })
		}
		select {
		case <-all[of]:
		case <-late:
		}
		waiting[of].Add(-1)
		return false
	})
	src, err := nemo.New().Open(t.Context(), at, &format.OpenOptions{Store: rocks.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if spans, err := src.Split("0", record.Of(record.String), 16); err != nil || len(spans) < 8 {
		t.Errorf("%d spans, %v", len(spans), err)
	}
	for of, what := range []string{"tables", "blocks"} {
		select {
		case <-all[of]:
		default:
			t.Errorf("never %d %s at the same time", n, what)
		}
	}
}

// TestObjectsAlike compares files of one server whose addresses differ in the query or in the name only.
func TestObjectsAlike(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"bw-basic": "", "nemo-basic": ""}
	for name := range files {
		files[name] = filepath.Join(dir, name+".rdb")
		ok(t, "convert", "--on-conflict", "rename", golden(t, name), "rdb:"+files[name])
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := r.URL.Query().Get("versionId")
		if of == "" {
			of = strings.TrimSuffix(r.URL.Path[1:], ".rdb")
		}
		http.ServeFile(w, r, files[of])
	}))
	defer web.Close()
	for _, at := range []string{web.URL + "/dump.rdb?versionId=", web.URL + "/"} {
		a, b := at+"bw-basic", at+"nemo-basic"
		for _, c := range []struct {
			a, b string
			code int
		}{{a, b, cli.ExitFindings}, {b, a, cli.ExitFindings}, {a, a, cli.ExitOK}, {a, files["bw-basic"], cli.ExitOK},
			{files["nemo-basic"], b, cli.ExitOK}} {
			if r := kvferry(t, "diff", c.a, c.b); r.code != c.code {
				t.Errorf("diff %s %s: exit %d: %s%s", c.a, c.b, r.code, r.stdout, r.stderr)
			}
		}
	}
}

// TestObjectsSecrets prints the addresses of a sound and of a damaged file without their secrets, in command lines with
// the places of them.
func TestObjectsSecrets(t *testing.T) {
	dir := fastDir(t)
	rdb := filepath.Join(dir, "set.rdb")
	ok(t, "convert", buildSmall(t, nemo.New(), convertedSet()...), "rdb:"+rdb, "--on-conflict", "rename")
	data, err := os.ReadFile(rdb)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "name" || password != "secret" || r.URL.Query().Get("sig") != "secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		file := data
		if strings.HasPrefix(r.URL.Path, "/bad") {
			file = data[:len(data)/2]
		}
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), bytes.NewReader(file))
	}))
	defer web.Close()
	at := func(file string) string {
		return strings.Replace(web.URL, "http://", "http://name:secret@", 1) + "/" + file + "?sig=secret"
	}
	shown := func(file string) string {
		return strings.Replace(web.URL, "http://", "http://…@", 1) + "/" + file + "?sig=…"
	}
	n := 0
	target := func() string { n++; return fmt.Sprintf("pika3:%s/%d", dir, n) }
	for _, file := range []string{"good.rdb", "bad.rdb"} {
		for _, c := range []struct {
			words []string
			lines bool // command lines are printed
		}{
			{[]string{"plan", "--on-conflict", "rename", at(file), target()}, true},
			{[]string{"convert", at(file), target()}, file == "bad.rdb"},
			{[]string{"convert", "--dry-run", "--format", "json", at(file), target()}, false},
			{[]string{"inspect", "-v", at(file)}, false},
			{[]string{"inspect", "--format", "html", at(file)}, file == "good.rdb"},
			{[]string{"verify", at(file)}, file == "bad.rdb"},
			{[]string{"verify", "--format", "json", at(file)}, true},
			{[]string{"fingerprint", at(file)}, false},
			{[]string{"dump", at(file)}, false},
			{[]string{"diff", at(file), at("good.rdb")}, false},
			{[]string{"diff", "--format", "patch", rdb, at(file)}, false},
			{[]string{"convert", "--failure-report", at(file), target()}, file == "bad.rdb"},
			{[]string{"convert", "--failure-report", "--allow-loss", "damaged", "--on-conflict", "rename", at(file), target()}, false},
			{[]string{"inspect", "--html", filepath.Join(dir, "page.html"), "--format", "json", "-o", filepath.Join(dir, "inspect.json"), at(file)}, false},
			{[]string{"verify", "--format", "json", "-o", filepath.Join(dir, "verify.json"), at(file)}, false},
			{[]string{"verify", "--format", "junit", "-o", filepath.Join(dir, "verify.xml"), at(file)}, false},
			{[]string{"verify", "--format", "sarif", "-o", filepath.Join(dir, "verify.sarif"), at(file)}, false},
			{[]string{"verify", "--part", "1/2", "--now", "2027-01-01", "-o", filepath.Join(dir, "part.json"), at(file)}, false},
			{[]string{"fingerprint", "-o", filepath.Join(dir, "fingerprint.json"), at("good.rdb")}, false},
			{[]string{"dump", "--salvage", "--format", "parquet", "-o", filepath.Join(dir, file+".parquet"), at(file)}, false},
			{[]string{"diff", "--format", "patch", "-o", filepath.Join(dir, file+".patch"), at("good.rdb"), rdb}, false},
			{[]string{at(file)}, true},
		} {
			r := kvferry(t, c.words...)
			out := r.stdout + r.stderr
			if strings.Contains(out, "secret") || c.lines && !strings.Contains(out, shown(file)) {
				t.Errorf("%s: exit %d: %s", c.words, r.code, out)
			}
		}
	}
	written := 0
	if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == rdb {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s has secrets: %q", name, text)
		}
		if strings.HasSuffix(name, ".json") {
			written++
		}
		return err
	}); err != nil || written < 6 {
		t.Errorf("%d reports: %v", written, err)
	}
	args := []string{"convert", "--match", "http://u:p@h/?a=b", "--match", "*", at("good.rdb"), "pika3:" + dir}
	got, want := goOn(args), shown("good.rdb")
	if !strings.Contains(got, want) || strings.Contains(got, "secret") || !strings.Contains(got, "http://u:p@h/?a=b") {
		t.Errorf("%s", got)
	}
}

// TestObjectsInMessages damages tables and removes files: messages name them by their address.
func TestObjectsInMessages(t *testing.T) {
	f := s3test.NewFake(t)
	f.PutTree(t, golden(t, "bw-basic"))
	rows := 0
	for _, key := range f.Keys() {
		ext := path.Ext(key)
		if ext == ".sst" {
			f.Put(key, []byte("no table"))
		} else if !strings.HasPrefix(path.Base(key), "MANIFEST") {
			continue
		} else if rows++; rows%2 == 1 {
			f.Delete(key)
		}
	}
	for _, name := range []string{"verify", "fingerprint", "inspect", "dump"} {
		for _, at := range []string{"/bw-basic", "/bw-basic/hashes", "/none"} {
			r := kvferry(t, name, "s3://"+s3test.Bucket+at)
			out := r.stdout + r.stderr
			if r.code == cli.ExitOK || !strings.Contains(out, "s3://"+s3test.Bucket+at) ||
				strings.Contains(out, "s3:/"+s3test.Bucket) {
				t.Errorf("%s %s: exit %d: %s", name, at, r.code, out)
			}
		}
	}
}

// TestObjectsTarget converts into an object store: the objects are the files of a conversion to the disk.
func TestObjectsTarget(t *testing.T) {
	f := s3test.NewFake(t)
	objectsTarget(t, f.Keys)
}

// TestObjectsTargetOfServer converts into a real S3 server.
func TestObjectsTargetOfServer(t *testing.T) {
	s3test.NewServer(t)
	objectsTarget(t, nil)
}

func objectsTarget(t *testing.T, keys func() []string) {
	src, here := golden(t, "nemo-basic"), t.TempDir()
	t.Chdir(fastDir(t))
	rename := []string{"convert", "--on-conflict", "rename", "--workers", "2"}
	for name, to := range someOf(map[string]string{"file": "rdb:%s.rdb", "directory": "pika3.5:%s", "log": "aof:%s",
		"store": "kvrocks:%s"}, "file", "directory") {
		address, path := "s3://"+s3test.Bucket+"/a/"+name, filepath.Join(here, name)
		prefix, suffix, _ := strings.Cut(to, "%s")
		ok(t, append(rename, src, prefix+path+suffix)...)
		out := ok(t, append(rename, src, prefix+address+suffix)...)
		if !strings.Contains(out, address+suffix) || !strings.Contains(out, "report: s3-data-a-"+name+suffix+".kvferry-report.json") {
			t.Errorf("%s: %s", name, out)
		}
		samePrinted(t, path+suffix, address+suffix, [][]string{{"fingerprint"}, {"verify"}})
		again := kvferry(t, append(rename, src, prefix+address+suffix)...)
		if again.code != cli.ExitFailed || !strings.Contains(again.stderr, address+suffix+": already exists") {
			t.Errorf("%s: exit %d: %s", name, again.code, again.stderr)
		}
		line := "kvferry diff " + src + " " + prefix + address + suffix
		if !strings.Contains(out, "to compare source and copy: "+line+"\n") {
			t.Errorf("%s: %s", name, out)
		}
		if out := ok(t, commandWords(line)[1:]...); !strings.Contains(out, "equal as converted") ||
			!strings.Contains(out, address+suffix+".kvferry-report.json") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if keys != nil && slices.Contains(keys(), "a/directory/_kvferry-incomplete") {
		t.Errorf("%q", keys())
	}
}

// TestObjectsTargetKilled kills a conversion in the middle of its upload. --resume sends the rest.
func TestObjectsTargetKilled(t *testing.T) {
	f, src := s3test.NewFake(t), golden(t, "nemo-basic")
	t.Chdir(fastDir(t))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"convert", "--on-conflict", "rename", src, "pika3.5:s3://data/a/new", "--rate", "64MiB"}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
	var puts atomic.Int64
	f.After(func(r *http.Request) {
		if r.Method == http.MethodPut && puts.Add(1) == 6 {
			cmd.Process.Kill()
		}
	})
	if err := cmd.Run(); err == nil {
		t.Fatal("it was not killed")
	}
	f.After(nil)
	if r := kvferry(t, "verify", "s3://data/a/new"); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "its upload is not complete") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	ok(t, slices.Insert(slices.Clone(args), 1, "--resume")...)
	ok(t, "verify", "s3://data/a/new")
}

// TestObjectsTargetRefused refuses what has no meaning for an object store.
func TestObjectsTargetRefused(t *testing.T) {
	s3test.NewFake(t)
	t.Chdir(fastDir(t))
	src := golden(t, "nemo-basic")
	for want, args := range map[string][]string{
		"--skip-existing: s3://data/x is not a server": {"--skip-existing", src, "pika3.5:s3://data/x"},
		"cannot be written in parts":                   {"--part", "1/2", src, "pika3.5:s3://data/x"},
		"a web server is not written":                  {src, "rdb:https://host/x.rdb"},
		"names only a bucket":                          {src, "rdb:s3://data"},
		"there is no bucket other":                     {src, "pika3.5:s3://other/x"},
	} {
		r := kvferry(t, append([]string{"convert"}, args...)...)
		if r.code == cli.ExitOK || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if left := entries(t, "."); left != "" {
		t.Errorf("left %s", left)
	}
	for to, want := range map[string]string{"rdb:s3://data/a/x.rdb": "aws s3 cp s3://data/a/x.rdb /data/x.rdb",
		"kvrocks:s3://data/a/x": "aws s3 sync --exclude _kvferry-manifest.json s3://data/a/x /data/x"} {
		out := kvferry(t, "plan", src, to).stdout
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) || strings.Contains(out, "mkdir") {
			t.Errorf("the runbook into %s: %s", to, out)
		}
	}
}

// TestObjectsParquet dumps into an object store. A run that fails in the middle leaves nothing behind.
func TestObjectsParquet(t *testing.T) {
	f, src, here := s3test.NewFake(t), golden(t, "nemo-basic"), filepath.Join(fastDir(t), "export")
	temp := fastDir(t)
	dump := []string{"dump", "--format", "parquet", "--now", "2026-01-01", src, "--temp-dir", temp, "--workers", "2", "-o"}
	ok(t, append(dump, here)...)
	var puts atomic.Int64
	f.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && puts.Add(1) == 3 {
			s3test.Fail(w, r, http.StatusForbidden, "AccessDenied", "Access Denied")
			return true
		}
		return false
	})
	if r := kvferry(t, append(dump, "s3://data/a/export")...); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "Access Denied") || len(f.Keys()) > 0 {
		t.Errorf("exit %d: %s; left %q", r.code, r.stderr, f.Keys())
	}
	f.Before(nil)
	ok(t, append(dump, "s3://data/a/export", "--rate", "64MiB")...)
	if left := entries(t, temp); left != "" {
		t.Errorf("left %s", left)
	}
	samePrinted(t, here, "s3://data/a/export", [][]string{{"fingerprint"}, {"verify"}})
	if r := kvferry(t, append(dump, "s3://data/a/export")...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "already exists") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
