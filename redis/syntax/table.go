// Package syntax holds the table of Redis commands. commands.txt lists all commands that may occur in a log or that
// kvferry serve knows. The replay of logs and the server add a function to each row.
package syntax

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kvferry/internal/shared/argument"
)

// Command is a row of the table.
type Command struct {
	Name string // in lower case; of a subcommand both names, as in config|get
	// Arity is the number of arguments in Redis 7.0, including the name; -n means at least n. Newest is the same for the newest
	// server.
	Arity, Newest int
	// First, Last and Step are the positions of keys, as in the reply to COMMAND. They are 0 without such keys.
	First, Last, Step int
	// Count is the position of the argument with the number of keys, which follow it. It is 0 without such an argument, and -1
	// if the first half of the arguments after STREAMS are keys.
	Count int
	// Log has a letter for the first key and one for the other keys if they differ: r if the replay of the command reads the
	// key, w if it writes it, u if it does both. A dot means that it uses no keys, an exclamation mark that it may change any
	// key. Log is empty for commands that never occur in a log.
	Log string
	// Flags is the list of flags in the reply to COMMAND.
	Flags []string
	// Since is the first version of Redis with the command. Valkey is the first version of Valkey with it, if the command is
	// newer than Redis 7.2.
	Since, Valkey string
	// Group and Summary are part of the reply to COMMAND DOCS. kvferry serve does not know commands without a group.
	Group, Summary string
}

//go:embed commands.txt
var table string

// Commands returns the rows by name.
var Commands = sync.OnceValue(func() map[string]*Command {
	all := map[string]*Command{}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		for i := range f {
			if f[i] == "-" {
				f[i] = ""
			}
		}
		c := &Command{Name: f[0], Log: f[6], Group: f[9], Summary: strings.Join(f[10:], " "),
			Flags: strings.FieldsFunc(f[7], func(r rune) bool { return r == ',' })}
		c.Since, c.Valkey, _ = strings.Cut(f[8], "/")
		arity, newest, two := strings.Cut(f[1], "/")
		if !two {
			newest = arity
		}
		places := []*int{&c.Arity, &c.Newest, &c.First, &c.Last, &c.Step, &c.Count}
		for i, word := range append([]string{arity, newest}, f[2:6]...) {
			*places[i], _ = strconv.Atoi(word) // a test reads the table
		}
		all[c.Name] = c
	}
	return all
})

// Has reports whether a command has a flag.
func (c *Command) Has(flag string) bool { return slices.Contains(c.Flags, flag) }

// Takes reports whether a command of an arity accepts n arguments.
func Takes(arity, n int) bool { return n == arity || arity < 0 && n >= -arity }

// Keys returns the keys at fixed positions, and the keys whose number is an argument. whole is false if that argument is not a
// number, or if fewer keys follow it.
func (c *Command) Keys(args [][]byte) (fixed, counted [][]byte, whole bool) {
	last := min(c.Last, len(args)-1)
	if c.Last < 0 {
		last = len(args) + c.Last
	}
	for i := c.First; i > 0 && i <= last; i += c.Step {
		fixed = append(fixed, args[i])
	}
	switch {
	case c.Count < 0:
		at := slices.IndexFunc(args, func(a []byte) bool { return argument.Is(a, "STREAMS") }) + 1
		return fixed, args[at : at+(len(args)-at)/2*min(at, 1)], true
	case c.Count <= 0 || c.Count >= len(args):
		return fixed, nil, true
	}
	rest := args[c.Count+1:]
	n, err := argument.ParseInt(args[c.Count])
	if err != nil || n < 0 {
		return fixed, nil, false
	}
	return fixed, rest[:min(n, int64(len(rest)))], n <= int64(len(rest))
}
