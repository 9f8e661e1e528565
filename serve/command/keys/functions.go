package keys

import (
	"encoding/binary"
	"fmt"
	"regexp"

	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/argument"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// registration matches the registration of a function with a literal name, as a call or with named arguments. The
// library is not run.
var registration = regexp.MustCompile(`redis\.register_function\s*[({]\s*\{?\s*(?:function_name\s*=\s*)?["']([^"']+)["']`)

func functionList(c *command.Call) error {
	pattern, code := "", false
	for i := 2; i < len(c.Args); i++ {
		switch {
		case argument.Is(c.Args[i], "WITHCODE") && !code:
			code = true
		case argument.Is(c.Args[i], "LIBRARYNAME") && pattern == "":
			if i++; i == len(c.Args) {
				return argument.Refuse("ERR library name argument was not given")
			}
			pattern = string(c.Args[i])
		default:
			return argument.Refuse(fmt.Sprintf("ERR Unknown argument %s", c.Args[i]))
		}
	}
	libraries, err := c.Server.Keys.Libraries(c.Ctx)
	if err != nil {
		return err
	}
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		for _, source := range libraries {
			if name := rdb.LibraryName(source); pattern == "" || filter.Glob(pattern, []byte(name)) {
				n++
				library(c, name, source, code)
			}
		}
		return n, nil
	})
}

// library writes what FUNCTION LIST shows of a library.
func library(c *command.Call, name string, source []byte, code bool) {
	c.W.Header(resp.Map, 3+command.Number(code))
	c.W.Values("library_name", name, "engine", "LUA", "functions")
	functions := registration.FindAllSubmatch(source, -1)
	c.W.Header(resp.Array, int64(len(functions)))
	for _, f := range functions {
		c.W.Pairs("name", f[1], "description", nil, "flags", func() { c.W.Header(resp.Set, 0) })
	}
	if code {
		c.W.Values("library_code", source)
	}
}

// functionDump replies with the libraries in the form that FUNCTION RESTORE takes: as in an RDB file, then its version and
// the checksum.
func functionDump(c *command.Call) error {
	libraries, err := c.Server.Keys.Libraries(c.Ctx)
	if err != nil {
		return err
	}
	var out []byte
	for _, source := range libraries {
		out = rdb.AppendFunction(out, source)
	}
	out = binary.LittleEndian.AppendUint16(out, functionVersion)
	c.W.Bulk(binary.LittleEndian.AppendUint64(out, crc64.Update(0, out)))
	return nil
}

// functionVersion is the first RDB version with functions.
const functionVersion = 10

func functionStats(c *command.Call) error {
	libraries, err := c.Server.Keys.Libraries(c.Ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, source := range libraries {
		n += len(registration.FindAll(source, -1))
	}
	c.W.Pairs("running_script", nil, "engines", func() {
		c.W.Pairs("LUA", func() { c.W.Pairs("libraries_count", len(libraries), "functions_count", n) })
	})
	return nil
}
