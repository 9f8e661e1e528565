package server

import (
	"bytes"

	"kvferry/internal/text/resp"
)

// askingCommand precedes each command for a slot that is being migrated to the server.
var askingCommand = resp.AppendCommand(nil, "ASKING")

// withAsking inserts ASKING before each command, and counts all commands.
func withAsking(data []byte) (out []byte, commands int) {
	for len(data) > 0 {
		n := commandLen(data)
		out = append(append(out, askingCommand...), data[:n]...)
		data = data[n:]
		commands += 2
	}
	return out, commands
}

// argument returns an argument of the first command in data, which was encoded here; argument 0 is its name.
func argument(data []byte, at int) []byte {
	_, rest := lineNumber(bytes.TrimPrefix(data, askingCommand))
	for ; ; at-- {
		size, value := lineNumber(rest)
		if at == 0 {
			return value[:size]
		}
		rest = value[size+2:]
	}
}

// CountCommands counts commands that were encoded here.
func CountCommands(data []byte) (n int) {
	for ; len(data) > 0; n++ {
		data = data[commandLen(data):]
	}
	return n
}

// commandLen returns the length of the first command.
func commandLen(data []byte) int {
	args, rest := lineNumber(data)
	for range args {
		var size int
		size, rest = lineNumber(rest)
		rest = rest[size+2:]
	}
	return len(data) - len(rest)
}

// lineNumber parses a line such as *3 or $5.
func lineNumber(data []byte) (int, []byte) {
	n, i := 0, 1
	for ; data[i] != '\r'; i++ {
		n = 10*n + int(data[i]-'0')
	}
	return n, data[i+2:]
}
