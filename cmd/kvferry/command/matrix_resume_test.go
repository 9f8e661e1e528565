package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/record"
)

// failing is a format whose sources fail to read some types of some databases.
type failing struct {
	format.Format
	fails func(db string, t record.TypeSet) bool
}

var errPlanned = errors.New("planned to fail here")

func (f failing) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	src, err := f.Format.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return failingSource{src, f.fails}, nil
}

type failingSource struct {
	format.Source
	fails func(db string, t record.TypeSet) bool
}

func (s failingSource) Records(ctx context.Context, db string, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	if s.fails(db, t) {
		return nil, errPlanned
	}
	return s.Source.Records(ctx, db, t, span, e)
}

// TestMatrixResume checks that a conversion that failed after some databases resumes and writes the same bytes as an
// uninterrupted one, with several types in each shard.
func TestMatrixResume(t *testing.T) {
	t.Parallel()
	for name, src := range matrixGoldens {
		if src.format != "ardb" {
			continue
		}
		src.path = golden(t, name)
		for _, dst := range some(matrixTargets, 4) {
			if dst.format == "ssdb" { // it has one database
				continue
			}
			dst.path = filepath.Join(fastDir(t), "whole")
			flags := []string{"--allow-loss", "expiry-ms,inner-nul,key-too-long,score-range,stream,stream-expiry", "--workers", "1"}
			ok(t, append([]string{"convert", src.String(), dst.String()}, flags...)...)
			want := treeBytes(t, dst.path)
			dst.path = filepath.Join(fastDir(t), "whole")
			args := append([]string{"convert", src.String(), dst.String(), "--resume"}, flags...)
			app, least := testApp(), smallestDB(t, src)
			for i, f := range app.Formats {
				if f.Name() == "ardb" {
					app.Formats[i] = failing{f, func(db string, _ record.TypeSet) bool { return db == least }}
				}
			}
			var stderr bytes.Buffer
			code := app.Run(context.Background(), args, &stderr, &stderr)
			if code != cli.ExitFailed || !strings.Contains(stderr.String(), errPlanned.Error()) {
				t.Fatalf("%s: exit %d, %s", name, code, &stderr)
			}
			if got := entries(t, filepath.Dir(dst.path)); got != "whole.kvferry" {
				t.Errorf("%s: left %s", name, got)
			}
			journal, err := os.ReadFile(filepath.Join(dst.path+".kvferry", "journal"))
			if err != nil || !bytes.Contains(journal, []byte(`"task":{`)) {
				t.Errorf("%s: no task is done: %v", name, err)
			}
			ok(t, args...)
			if rep := reportOf(t, dst.path); !rep.Timings.Resumed || !rep.Proof.Done {
				t.Errorf("%s to %s: resumed %v, proved %v", name, dst.format, rep.Timings.Resumed, rep.Proof.Done)
			}
			if treeBytes(t, dst.path) != want {
				t.Errorf("%s to %s %s: the resumed run wrote something else", name, dst.format, dst.store)
			}
		}
	}
}

// smallestDB returns the smallest database, which a single worker converts last.
func smallestDB(t *testing.T, p place) string {
	t.Helper()
	src := p.open(t)
	defer src.Close()
	var least string
	for _, db := range src.Databases() {
		if least == "" || src.Size(db, record.AllTypes) < src.Size(least, record.AllTypes) {
			least = db
		}
	}
	return least
}

// TestMatrixParts checks that parts make the target of one run, byte for byte, in every format that is
// written in parts.
func TestMatrixParts(t *testing.T) {
	t.Parallel()
	src := matrixGoldens["ardb-leveldb-basic"]
	src.path = golden(t, "ardb-leveldb-basic")
	for _, dst := range append([]place{{format: "rdb"}, {format: "aof"}}, matrixTargets...) {
		if dst.format == "ssdb" { // it has one database
			continue
		}
		dst.path = filepath.Join(fastDir(t), "whole")
		args := []string{src.String(), dst.String(), "--allow-loss", "expiry-ms,inner-nul,key-too-long,score-range,stream,stream-expiry"}
		ok(t, append([]string{"convert"}, args...)...)
		want := treeBytes(t, dst.path)
		dst.path = filepath.Join(fastDir(t), "whole")
		args[1] = dst.String()
		tasks, most := 0, 0
		for _, part := range []string{"3/3", "1/3", "2/3"} {
			var rep convert.PartReport
			err := json.Unmarshal([]byte(ok(t, append([]string{"convert", "--format", "json", "--part", part}, args...)...)),
				&rep)
			if err != nil {
				t.Fatal(err)
			}
			tasks, most = tasks+rep.Tasks, max(most, rep.Tasks)
		}
		ok(t, append([]string{"convert", "--finish"}, args...)...)
		if rep := reportOf(t, dst.path); rep.InParts != 3 || !rep.Proof.Done || rep.Tasks != tasks || most == tasks {
			t.Errorf("%s: %d parts with %d tasks of %d, proved %v", dst.format, rep.InParts, tasks, rep.Tasks, rep.Proof.Done)
		}
		if treeBytes(t, dst.path) != want {
			t.Errorf("%s %s: the parts make something else", dst.format, dst.store)
		}
	}
}
