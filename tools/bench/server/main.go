// Server measures redis-server: it starts a server on a socket in a temporary directory, loads it, and stops it. This
// program's CPU time includes the server's, as it waits for it.
//
//	server load FILE            the server loads an RDB file, or an append-only one, when it starts
//	server pipe FILE            redis-cli --pipe sends the commands of a file to it
//	server run CPU CMD ARG...   the command runs with SOCKET in its arguments replaced by the path of the socket; CPU is
//	                            written with the CPU time of the server, in nanoseconds
//
// Only run writes the server's own CPU time.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	dir, err := os.MkdirTemp("", "kvferry-bench-server-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	switch {
	case len(args) == 2 && args[0] == "load":
		name, more := "dump.rdb", []string(nil)
		if strings.HasSuffix(args[1], ".aof") { // servers since version 7 move it to a directory of its own
			name, more = "appendonly.aof", []string{"--appendonly", "yes"}
		}
		if err := os.Symlink(absolute(args[1]), filepath.Join(dir, name)); err != nil {
			return err
		}
		_, err := serve(dir, func(string) error { return nil }, more...)
		return err
	case len(args) == 2 && args[0] == "pipe":
		_, err := serve(dir, func(socket string) error { return pipe(socket, args[1]) })
		return err
	case len(args) > 2 && args[0] == "run":
		took, err := serve(dir, func(socket string) error { return command(socket, args[2:]) })
		if err != nil {
			return err
		}
		return os.WriteFile(args[1], []byte(strconv.FormatInt(took.Nanoseconds(), 10)), 0o644)
	}
	return fmt.Errorf("usage: server load FILE | server pipe FILE | server run CPU CMD ARGS")
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// serve starts a server, which loads the files in dir, calls f and stops the server. It returns the server's CPU
// time.
func serve(dir string, f func(socket string) error, more ...string) (time.Duration, error) {
	socket := filepath.Join(dir, "socket")
	argv := []string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--loglevel", "warning"}
	server := exec.Command("redis-server", append(argv, more...)...)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return 0, err
	}
	err := ready(socket)
	if err == nil {
		err = f(socket)
	}
	if err != nil {
		server.Process.Kill()
		server.Wait()
		return 0, err
	}
	if _, err := ask(socket, "SHUTDOWN NOSAVE"); err != nil && err != io.EOF {
		return 0, err
	}
	if err := server.Wait(); err != nil {
		return 0, err
	}
	return server.ProcessState.UserTime() + server.ProcessState.SystemTime(), nil
}

// ready waits until the server has loaded its files.
func ready(socket string) error {
	for range 60000 {
		if answer, err := ask(socket, "PING"); err == nil && strings.HasPrefix(answer, "+PONG") {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("the server does not answer")
}

func ask(socket, line string) (string, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		return "", err
	}
	answer := make([]byte, 64)
	n, err := c.Read(answer)
	return string(answer[:n]), err
}

func pipe(socket, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command("redis-cli", "-s", socket, "--pipe")
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "errors: 0") {
		return fmt.Errorf("redis-cli: %v: %s", err, out)
	}
	return nil
}

func command(socket string, argv []string) error {
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "SOCKET", socket)
	}
	cmd := exec.Command(absolute(argv[0]), argv[1:]...)
	cmd.Dir = filepath.Dir(socket) // it may write a report here
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
