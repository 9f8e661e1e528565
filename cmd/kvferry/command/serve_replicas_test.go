package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
)

// serveAt runs kvferry serve on a free port and returns its address and what it leaves on standard error at its end.
func serveAt(t *testing.T, args ...string) (addr string, end func() result) {
	t.Helper()
	return serveFrom(t, nil, args...)
}

// serveFrom runs it with this standard input.
func serveFrom(t *testing.T, stdin io.Reader, args ...string) (addr string, end func() result) {
	t.Helper()
	out, in := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	done := make(chan result, 1)
	var stderr strings.Builder
	go func() {
		app := testApp()
		app.Stdin = stdin
		if !slices.Contains(args, "--port") {
			args = append(args, "--port", "0")
		}
		code := app.Run(ctx, args, in, &stderr)
		in.Close()
		done <- result{code: code, stderr: stderr.String()}
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if h, p := slices.Index(f, "-h"), slices.Index(f, "-p"); h > 0 && p > 0 {
			addr = net.JoinHostPort(f[h+1], f[p+1])
			break
		}
	}
	if addr == "" {
		t.Fatalf("it does not listen: %+v", <-done)
	}
	go io.Copy(io.Discard, out)
	return addr, func() result { return <-done }
}

// TestServeReplicas follows the page: a server replicates a dataset, kvferry ends, and the server holds all of it.
func TestServeReplicas(t *testing.T) {
	root := fastDir(t)
	unchanged(t, placed(t, root, "pika400-basic", "data/pika"))
	replica := redistest.Start(t, "--maxmemory", "200mb")
	var end func() result
	ran := 0
	for args := range commandsOf(t, "serve.md", root) {
		for i := range args {
			args[i] = strings.Replace(args[i], "/data/", root+"/data/", 1)
			args[i] = strings.Replace(args[i], "127.0.0.1:6380", replica.Addr, 1)
		}
		switch line := strings.Join(args, " "); {
		case strings.HasPrefix(line, "serve --exit-when-synced 1"):
			var addr string
			addr, end = serveAt(t, args...)
			host, port, _ := net.SplitHostPort(addr)
			replica.Client().Must(t, "REPLICAOF", host, port)
		case end != nil && args[0] == "diff":
			r := end()
			said := "replica " + replica.Addr + " is in sync (offset 14): on it, run REPLICAOF NO ONE\n"
			if r.code != cli.ExitOK || !strings.Contains(r.stderr, said) {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			replica.Client().Must(t, "REPLICAOF", "NO", "ONE")
			ok(t, args...)
			ran++
		}
	}
	if ran != 1 {
		t.Errorf("%d replicas were compared", ran)
	}
}

// TestServeRefuses: a replica gets an error instead of a dataset with losses, which are listed.
func TestServeRefuses(t *testing.T) {
	addr, _ := serveAt(t, "serve", golden(t, "nemo-basic"))
	c, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.Do("SYNC"); err == nil || !strings.Contains(err.Error(), "221 × same-name; accept it with --allow-loss same-name") {
		t.Errorf("%v, %v", got, err)
	}
	file := filepath.Join(fastDir(t), "none.rdb")
	for _, args := range [][]string{{"--rdb-version", "5"}, {"--on-conflict", "never"}, {"--allow-loss", "none"},
		{"--exit-when-synced", "-1"}} {
		if r := kvferry(t, append([]string{"serve", file}, args...)...); r.code != cli.ExitUsage {
			t.Errorf("%q: exit %d, %s", args, r.code, r.stderr)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was made")
	}
}

// TestServeStandardInput: what can be read only once is served and feeds replicas from one opening.
func TestServeStandardInput(t *testing.T) {
	path := packedRDB
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	addr, _ := serveFrom(t, file, "serve", "--rdb-version", "valkey80", "rdb:-")
	ok(t, "diff", path, saved(t, addr))
}

// saved returns the file that a server sends its replicas.
func saved(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "DBSIZE\r\nREPLCONF rdb-only 1\r\nSYNC\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	head := ""
	for !strings.HasPrefix(head, "$") {
		if head, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(fastDir(t), "copy.rdb")
	data, err := io.ReadAll(in)
	if err = errors.Join(err, os.WriteFile(file, data, 0o600)); err != nil || head != fmt.Sprintf("$%d\r\n", len(data)) {
		t.Fatal(head, len(data), err)
	}
	return file
}

// TestServeEverywhere: 0.0.0.0 is IPv4 alone, has a line that can be typed, and a warning in the form of the log.
func TestServeEverywhere(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, in := io.Pipe()
	var stderr strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- testApp().Run(ctx, []string{"serve", "--listen", "0.0.0.0", "--port", "0", "--log", "json", packedRDB}, in,
			&stderr)
		in.Close()
	}()
	typed := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "redis-cli") {
			typed = lines.Text()
			cancel()
		}
	}
	<-code
	warning, _, _ := strings.Cut(stderr.String(), "\n")
	if !strings.Contains(typed, "redis-cli -h 127.0.0.1 -p ") || !json.Valid([]byte(warning)) ||
		!strings.Contains(warning, "0.0.0.0:") ||
		!strings.Contains(warning, "everybody who reaches this address can read all data") {
		t.Errorf("%q, and %q", typed, stderr.String())
	}
}
