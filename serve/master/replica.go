package master

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// Replica holds the options that a client has set with REPLCONF.
type Replica struct {
	host, port string
	listens    bool   // it has a port, as servers have
	eof        bool   // it reads a file of unknown length
	channel    bool   // Redis 8: it offered a second connection for the file
	version    string // of the server; only Valkey sends it
	once       bool   // rdb-only: close the link after the file
	only       string // rdb-filter-only
}

// all is the filter of a replica that wants everything.
const all = "*"

// NewReplica returns the options of a new client.
func NewReplica(address string) *Replica {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address // a Unix socket
	}
	return &Replica{host: host, port: port, only: all}
}

// maxOption is the longest value of an option.
const maxOption = 256

// address is where the replica can be reached.
func (r *Replica) address() string {
	if r.port == "" {
		return "on a Unix socket"
	}
	return net.JoinHostPort(r.host, r.port)
}

// set sets an option of REPLCONF.
func (r *Replica) set(option, value string) error {
	if len(value) > maxOption {
		return fmt.Errorf("ERR value of %.64s is too long", record.Quote([]byte(option)))
	}
	switch option = strings.ToLower(option); option {
	case "listening-port":
		if _, err := strconv.ParseUint(value, 10, 16); err != nil {
			return errors.New("ERR value is not an integer or out of range")
		}
		r.port, r.listens = value, true
	case "ip-address":
		r.host = value
	case "capa":
		r.eof = r.eof || strings.EqualFold(value, "eof")
		r.channel = r.channel || strings.EqualFold(value, "rdb-channel-repl")
	case "version":
		r.version = value
	case "rdb-only":
		r.once = value == "1"
	case "rdb-filter-only":
		if r.only = strings.ToLower(value); r.only != functions && r.only != "" {
			return fmt.Errorf("ERR Unsupported rdb-filter-only option: %s", record.Quote([]byte(value)))
		}
	default: // KeyDB's uuid among them: a master that knows it is taken for KeyDB
		return fmt.Errorf("ERR Unrecognized REPLCONF option: %.64s", record.Quote([]byte(option)))
	}
	return nil
}

// The newest versions that servers load.
var (
	functionsRDB = rdb.Version{Number: 10}
	valkey8RDB   = rdb.Version{Number: 11}
	redis8RDB    = rdb.Version{Number: 12}
	valkey9RDB   = rdb.Version{Number: 80, Valkey: true}
)

// kind returns the file that the replica gets.
func (r *Replica) kind(version *rdb.Version) kind {
	k := kind{rdb.DefaultVersion, r.only}
	major, _, _ := strings.Cut(r.version, ".")
	valkey, _ := strconv.Atoi(major)
	switch {
	case version != nil:
		k.version = *version
	case r.channel:
		k.version = redis8RDB
	case valkey >= 9:
		k.version = valkey9RDB
	case valkey == 8:
		k.version = valkey8RDB
	case r.only == functions:
		k.version = functionsRDB
	}
	return k
}

// functions is the only filter that Redis knows.
const functions = "functions"

// onlyOf returns which records pass a filter.
func onlyOf(only string) func(h *record.Header) bool {
	return func(h *record.Header) bool { return only == functions && h.Keyless == record.Library }
}
