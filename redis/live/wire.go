package live

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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

// errAnswer says that a server does not speak RESP2.
var errAnswer = errors.New("the answer is not that of a Redis server")

// readAnswer reads an answer and returns its first line; what follows it is passed over.
func readAnswer(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 {
		return "", errAnswer
	}
	kind, text := line[0], line[:len(line)-2]
	switch kind {
	case '+', ':':
		if kind == '+' {
			return "+", nil
		}
		return string(text), nil
	case '-':
		return string(text), nil
	case '$', '*':
	default:
		return "", errAnswer
	}
	n, err := strconv.ParseInt(string(text[1:]), 10, 64)
	if err != nil {
		return "", errAnswer
	}
	if kind == '$' && n >= 0 {
		_, err = io.CopyN(io.Discard, in, n+2)
		return "$", err
	}
	for ; n > 0; n-- {
		if _, err := readAnswer(in); err != nil {
			return "", err
		}
	}
	return string(kind), nil
}

// askingCommand is sent to a server of a cluster before each command about a slot that is on its way there.
var askingCommand = appendCommand(nil, []byte("ASKING"))

// withAsking puts ASKING before each command, and counts all.
func withAsking(data []byte) (out []byte, commands int) {
	for len(data) > 0 {
		n := commandLen(data)
		out = append(append(out, askingCommand...), data[:n]...)
		data = data[n:]
		commands += 2
	}
	return out, commands
}

// secondArgument returns the key of a command: *n, its name, the key.
func secondArgument(data []byte) ([]byte, error) {
	rest := bytes.TrimPrefix(data, askingCommand)
	number := func(sign byte) (int, error) {
		for i := range rest {
			if rest[i] == '\n' && i > 1 && rest[0] == sign {
				n, err := strconv.Atoi(string(rest[1 : i-1]))
				rest = rest[i+1:]
				return n, err
			}
		}
		return 0, fmt.Errorf("no command")
	}
	if _, err := number('*'); err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		n, err := number('$')
		if err != nil || n+2 > len(rest) {
			return nil, errors.New("no key")
		}
		if i == 1 {
			return rest[:n], nil
		}
		rest = rest[n+2:]
	}
}
