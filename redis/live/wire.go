package live

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// appendCommand appends a command.
func appendCommand(dst []byte, args ...[]byte) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(args)), 10), "\r\n"...)
	for _, a := range args {
		dst = appendBulk(dst, a)
	}
	return dst
}

func appendBulk(dst, b []byte) []byte {
	dst = append(strconv.AppendInt(append(dst, '$'), int64(len(b)), 10), "\r\n"...)
	return append(append(dst, b...), "\r\n"...)
}

// errAnswer means that the server does not speak RESP2.
var errAnswer = errors.New("the answer is not that of a Redis server")

// Replies to the pipe's commands are short; these limits end the reading of a longer one.
const (
	maxParts = 4 << 20
	maxText  = 1 << 20
)

// readAnswer reads a reply and returns its first line. It skips the rest without recursion, so nesting costs no stack.
func readAnswer(in *bufio.Reader) (string, error) {
	first, left, err := readPart(in)
	for parts := 0; err == nil && left > 0; parts++ {
		if parts > maxParts {
			return "", fmt.Errorf("%w: it has more than %d parts", errAnswer, maxParts)
		}
		var inside int64
		if _, inside, err = readPart(in); inside > math.MaxInt64-left {
			return "", errAnswer
		}
		left += inside - 1
	}
	if err != nil {
		return "", err
	}
	return first, nil
}

// readPart reads a scalar, or the header of an array, and returns the number of elements that follow.
func readPart(in *bufio.Reader) (first string, inside int64, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", 0, err
	}
	if len(line) < 3 {
		return "", 0, errAnswer
	}
	text := string(line[:len(line)-2])
	switch kind := text[:1]; kind {
	case "+":
		return kind, 0, nil
	case ":", "-":
		return text, 0, nil
	case "$", "*":
		n, err := strconv.ParseInt(text[1:], 10, 64)
		if err != nil || kind == "$" && n > maxText {
			return "", 0, errAnswer
		}
		if kind == "*" {
			return kind, max(0, n), nil
		}
		if n >= 0 {
			_, err = io.CopyN(io.Discard, in, n+2)
		}
		return kind, 0, err
	}
	return "", 0, errAnswer
}

// askingCommand precedes each command for a slot that is being migrated to the server.
var askingCommand = appendCommand(nil, []byte("ASKING"))

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
