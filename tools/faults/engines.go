package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kvferry/internal/testkit/redistest"
)

// bench replaces testing.TB: failures are panics.
type bench struct {
	testing.TB
	dir string
	end []func()
}

type failure string

func (b *bench) Helper()                        {}
func (b *bench) Cleanup(f func())               { b.end = append(b.end, f) }
func (b *bench) Error(args ...any)              { panic(failure(fmt.Sprint(args...))) }
func (b *bench) Fatal(args ...any)              { b.Error(args...) }
func (b *bench) Fatalf(form string, a ...any)   { b.Error(fmt.Sprintf(form, a...)) }
func (b *bench) Skip(args ...any)               { b.Error(args...) }
func (b *bench) Skipf(form string, args ...any) { b.Error(fmt.Sprintf(form, args...)) }

func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp(b.dir, "engine-")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// close runs the cleanups.
func (b *bench) close() {
	for _, f := range b.end {
		f()
	}
	b.end = nil
}

// try calls f and returns its failure.
func try(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%s", string(p))
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// engine is a reference server.
type engine struct {
	redistest.Found
	server  *redistest.Server
	client  *redistest.Client
	known   map[string]bool
	version int // RDB version in its payloads
	corpus  []*value
}

// servers starts the available servers, the server on the PATH first. It prints which are missing.
func (h *harness) servers() ([]*engine, error) {
	if h.engines != nil {
		return h.engines, nil
	}
	found := redistest.Engines()
	if path, err := exec.LookPath("redis-server"); err == nil {
		found = append([]redistest.Found{{Name: redistest.Version(path), Path: path}}, found...)
	}
	for _, f := range found {
		e := &engine{Found: f}
		if !h.chosen(f.Name) {
			continue
		}
		err := try(func() {
			e.server = redistest.StartEngine(h.bench, h.bounded(f.Path), "--sanitize-dump-payload", "yes",
				"--enable-debug-command", "yes")
			e.client = e.server.Client()
		})
		if err != nil { // servers before 6.2 do not check payloads
			fmt.Printf("SKIPPED: %s: %v\n", f.Name, err)
			continue
		}
		if e.known, err = e.client.Known(); err != nil {
			return nil, err
		}
		h.engines = append(h.engines, e)
	}
	if len(h.engines) == 0 {
		h.engines = []*engine{}
		fmt.Printf("SKIPPED: values, commands: no redis-server on the PATH or in %s, or no engine chosen\n",
			redistest.EnginesVariable)
	} else if os.Getenv(redistest.EnginesVariable) == "" {
		fmt.Printf("SKIPPED: servers but that on the PATH: %s names a directory of others\n", redistest.EnginesVariable)
	}
	return h.engines, nil
}

// bounded writes a script that starts a server with a memory limit: a forged count must not make it allocate gigabytes.
func (h *harness) bounded(path string) string {
	script := filepath.Join(h.dir, fmt.Sprintf("server-%d", len(h.engines)))
	text := fmt.Sprintf("#!/bin/sh\nulimit -v 1500000\nexec '%s' \"$@\"\n", path)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		h.bench.Fatal(err)
	}
	return script
}

// again restarts a server that has ended.
func (e *engine) again(b *bench) error {
	if err := e.server.Restart(); err != nil {
		return err
	}
	return try(func() { e.client = e.server.Client() })
}
