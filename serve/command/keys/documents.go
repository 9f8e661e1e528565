package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// documentCommands returns the commands on documents.
var documentCommands = command.Functions{
	"json.get": jsonGet, "json.type": jsonType,
}

// maxDocument limits a document: all of its text is in memory.
const maxDocument = 64 << 20

// document calls f with the text of a document, which is valid until f returns; nil if the key does not exist.
func document(c *command.Call, f func(text []byte) error) (err error) {
	v, err := c.Open(c.Args[1], command.Reading{})
	if err != nil {
		return err
	}
	if v == nil {
		return f(nil)
	}
	defer command.CloseAll(&err, v)
	if v.Header().Type != record.Other {
		return argument.ErrWrongType
	}
	var elems [2]record.Element
	n, err := v.Read(elems[:])
	if err != nil && err != io.EOF {
		return err
	}
	text, err := textOf(elems[:n])
	if err == nil && !json.Valid(text) {
		err = &command.DamagedError{Key: c.Args[1], What: "the document is not JSON"}
	}
	if err != nil {
		return err
	}
	return f(text)
}

// textOf returns the text of a document from the elements of its record.
func textOf(elems []record.Element) (text []byte, err error) {
	if len(elems) != 1 {
		return nil, argument.ErrWrongType
	}
	e := &elems[0]
	if len(e.Value) > maxDocument {
		return nil, argument.Refuse("ERR kvferry reads JSON documents of up to 64 MiB")
	}
	switch string(e.Name) {
	case "kvrocks:ReJSON-RL":
		text = e.Value
	case "kvrocks:ReJSON-RL+cbor":
		text, err = fromCBOR(e.Value)
	case "ReJSON-RL":
		text, err = rdb.JSONText(e, maxDocument)
	default:
		err = argument.ErrWrongType
	}
	if errors.Is(err, rdb.ErrNoText) {
		return nil, argument.Refuse("ERR kvferry does not read this form of JSON: " + err.Error())
	}
	return text, err
}

// jsonGet is JSON.GET. With a path from $ on the reply is an array of the values there, otherwise the value.
func jsonGet(c *command.Call) error {
	var f jsonForm
	args := c.Args[2:]
	for len(args) > 0 {
		if len(args) > 1 && f.option(args[0], args[1]) {
			args = args[2:]
		} else if argument.Is(args[0], "NOESCAPE") { // strings stay as they are
			args = args[1:]
		} else {
			break
		}
	}
	if len(args) == 0 {
		args = [][]byte{[]byte(".")}
	}
	paths, list := make([]*jsonPath, len(args)), false
	for i, arg := range args {
		var err error
		if paths[i], err = parsePath(arg); err != nil {
			return err
		}
		list = list || paths[i].list
	}
	return document(c, func(text []byte) error {
		if text == nil {
			c.W.Null()
			return nil
		}
		out, err := jsonReply(&f, text, args, paths, list)
		if err == nil {
			c.W.Bulk(out)
		}
		return err
	})
}

// jsonReply returns the value of the only path, or an object with the values of all paths.
func jsonReply(f *jsonForm, text []byte, args [][]byte, paths []*jsonPath, list bool) (out []byte, err error) {
	for i, p := range paths {
		value := p.find(text)
		if value == nil && !list {
			return nil, notThere(args[i])
		}
		if len(paths) > 1 {
			out = append(appendQuoted(append(out, ",{"[b2i(i == 0)]), args[i]), ':')
		}
		if list {
			value = append(append([]byte{'['}, value...), ']')
		}
		out = append(out, value...)
	}
	if len(paths) > 1 {
		out = append(out, '}')
	}
	return f.appendTo(nil, out), nil
}

func b2i(b bool) int { return int(command.Number(b)) }

func notThere(arg []byte) error {
	return argument.Refuse(fmt.Sprintf("ERR Path %.128s does not exist", record.Quote(arg)))
}

// jsonType is JSON.TYPE.
func jsonType(c *command.Call) error {
	arg := []byte(".")
	switch len(c.Args) {
	case 2:
	case 3:
		arg = c.Args[2]
	default:
		return argument.Refuse("ERR wrong number of arguments for 'json.type' command")
	}
	p, err := parsePath(arg)
	if err != nil {
		return err
	}
	return document(c, func(text []byte) error {
		var value []byte
		if text != nil {
			value = p.find(text)
		}
		switch {
		case p.list && text != nil:
			c.W.Header(resp.Array, command.Number(value != nil))
			if value != nil {
				c.W.BulkString(kindOf(value))
			}
		case value == nil:
			c.W.Null()
		default:
			c.W.BulkString(kindOf(value))
		}
		return nil
	})
}
