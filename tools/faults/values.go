package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// atOnce is the number of values in one file, sent to a server together.
const atOnce = 50

// forgedValue is a case.
type forgedValue struct {
	label  string
	what   string // the forgery
	t      rdb.Type
	b      []byte
	reply  error  // the server's reply
	server string // the server's data afterwards
	told   []string
	ours   string
}

// values runs cases from n on: values of RDB files with a fault inside, read by kvferry and restored by a server.
func (h *harness) values(c *class, n int) error {
	engines, err := h.servers()
	if err != nil || len(engines) == 0 {
		c.done = true
		return err
	}
	e := engines[n/atOnce%len(engines)]
	if err := e.collect(h); err != nil {
		return err
	}
	first, last := n, n+atOnce
	if h.single {
		e = engines[n/atOnce%len(engines)]
		last = n + 1
	}
	var batch []*forgedValue
	for i := first; i < last; i++ {
		batch = append(batch, e.forge(h.seed, i))
	}
	c.cases += len(batch) - 1
	h.now(batch[0].label)
	if err := e.restore(h, c, batch); err != nil {
		return err
	}
	if err := e.read(h, batch); err != nil {
		return err
	}
	for _, f := range batch {
		c.judgeValue(e, f)
	}
	return nil
}

// forge makes case n.
func (e *engine) forge(seed uint64, n int) *forgedValue {
	r := fixtures.NewRand(seed, 'v', uint64(n))
	for {
		from := fixtures.Pick(r, e.corpus)
		v := from.clone()
		kind := fixtures.Pick(r, valueForgeries)
		what := kind.do(r, v)
		if what == "" || len(v.parts) == 0 {
			continue
		}
		f := &forgedValue{what: kind.name, t: v.t, b: v.write(),
			label: fmt.Sprintf("values/%d %s: %s of type %d: %s", n, e.Name, kind.name, from.t, what)}
		if kind.name != unforged && v.t == from.t && string(f.b) == string(from.write()) {
			continue
		}
		return f
	}
}

// payload returns the argument of RESTORE.
func (f *forgedValue) payload(version int) []byte {
	b := append([]byte{byte(f.t)}, f.b...)
	b = binary.LittleEndian.AppendUint16(b, uint16(version))
	return binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
}

// restore makes the server restore values. A value that ends the server is tried alone.
func (e *engine) restore(h *harness, c *class, batch []*forgedValue) error {
	var out []byte
	out = redistest.Append(out, "FLUSHALL")
	for i, f := range batch {
		out = redistest.Append(out, "RESTORE", strconv.Itoa(i), "0", string(f.payload(e.version)))
	}
	_, err := e.client.Write(out)
	if err == nil {
		_, err = e.client.Reply()
	}
	for i := 0; i < len(batch) && err == nil; i++ {
		var v any
		v, err = e.client.Reply()
		batch[i].reply, batch[i].server = nil, ""
		if refused, ok := v.(redistest.Error); ok {
			batch[i].reply = refused
		}
	}
	for i := 0; i < len(batch) && err == nil; i++ {
		if batch[i].reply == nil {
			err = try(func() { batch[i].server = e.client.Record(h.bench, strconv.Itoa(i)) })
		}
	}
	if err == nil {
		return nil
	}
	if err := e.again(h.bench); err != nil {
		return err
	}
	if len(batch) == 1 {
		c.count("the server ended")
		batch[0].reply = errEnded
		return nil
	}
	for i := range batch {
		if err := e.restore(h, c, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

const errEnded = redistest.Error("the server ended")

// read makes kvferry read the values from a file.
func (e *engine) read(h *harness, batch []*forgedValue) error {
	version := rdb.Version{Number: e.version, Valkey: e.version >= 80}
	file := rdb.AppendHead(nil, version, 0)
	file = rdb.AppendDatabase(file, version, 0, uint64(len(batch)), 0)
	some := false
	for i, f := range batch {
		body := append([]byte{byte(f.t)}, f.b...)
		if _, err := rdb.OpenDump(body, uint16(e.version)); err != nil {
			f.told = append(f.told, "payload: "+err.Error())
			if d, err := rdb.OpenDump(f.payload(e.version), uint16(e.version)); d.Value != nil ||
				errors.Is(err, record.ErrTrailing) {
				f.told = append(f.told, intoFooter)
			}
			continue
		}
		some = true
		file = append(rdb.AppendKey(file, f.t, []byte(strconv.Itoa(i)), 0), f.b...)
	}
	if !some {
		return nil
	}
	file = rdb.AppendEOF(file)
	file = binary.LittleEndian.AppendUint64(file, crc64.Update(0, file))
	path := filepath.Join(h.run.work, "values.rdb")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	ctx := context.Background()
	tell := func(f record.Finding) {
		if i, err := strconv.Atoi(string(f.Key)); err == nil && i < len(batch) && f.Severity != record.Note {
			batch[i].told = append(batch[i].told, f.Kind+": "+f.Detail)
		}
	}
	src, err := redis.New().Open(ctx, path, &format.OpenOptions{Options: store.Options{TempDir: h.run.work, Report: tell}})
	if err != nil {
		if len(batch) == 1 {
			batch[0].told = append(batch[0].told, err.Error())
			return nil
		}
		for i := range batch { // each alone
			if err := e.read(h, batch[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	defer src.Close()
	got := map[string]string{}
	var ledger record.Ledger
	r, err := src.Records(ctx, "0", record.AllTypes, format.Span{},
		&format.Env{Now: time.Now(), TempDir: h.run.work, Memory: 1 << 20, Ledger: &ledger, Report: tell})
	if err != nil {
		return err
	}
	if err := try(func() { redistest.Read(h.bench, got, r) }); err != nil {
		return err
	}
	for i, f := range batch {
		f.ours = got["0/"+strconv.Itoa(i)]
	}
	return nil
}

// reason explains why kvferry and a server may disagree on a value, by a text in a message.
type reason struct{ text, why string }

const intoFooter = "it ends in the footer"

// stricter lists the reasons to refuse values that servers accept.
var stricter = []reason{
	{"bytes left over", "servers ignore bytes after a value"},
	{intoFooter, "servers read on into the footer"},
	{"is not a score", "servers take the number that a text begins with, or 0"},
	{"the value contradicts itself", "servers check the headers of values less strictly"},
	{"an entry is not after the previous entry", "servers check the headers of values less strictly"},
	{"the number of entries differs from the header", "servers check the headers of values less strictly"},
	{"the stream's header counts", "servers check the headers of values less strictly"},
	{"a node is not after the previous node", "servers check the headers of values less strictly"},
	{" name: ", "servers ignore bytes after a value"}, // starting like KeyDB's
	{"does not begin a length", "servers take any byte for the begin of a length"},
	{" ms after ", "servers let the sum of two times run over"},
	{"unread-metadata", "records have no place for what streams remember of producers"},
	{"group-ahead", "only Redis 8.10 and later refuse the file"},
	{"score-nan", "servers do not look for NaN in packed values"},
	{"has a wrong length of the previous entry", "servers pass over a bit of an entry's length in listpacks"},
	{"node: an entry has an unknown encoding", "servers end nodes and zipmaps at the first FF"},
	{"zipmap: an entry reaches beyond the end", "servers end nodes and zipmaps at the first FF"},
	{"do not fit into the", "servers read on into the footer"},
	{"node: flags", "servers pass over flags that they do not know"},
}

// laxer returns the reason for reading a value that a server refuses, "" if it must be refused.
func (e *engine) laxer(f *forgedValue) string {
	switch {
	case f.ours == "":
		return "a collection without elements, which a server leaves out when it loads a file"
	case f.t >= rdb.TypeJSON && e.version < 15:
		return "a type of Dragonfly"
	case f.t == rdb.TypeHashZipmap && strings.Contains(string(f.b[:min(len(f.b), 6)]), "\xff"):
		return "a zipmap that counts 255 entries, which servers before 7.0 count themselves"
	case f.t == rdb.TypeModule:
		return "a value of a module, which is carried as it is"
	case f.t > rdb.TypeStream2 && !slices.ContainsFunc(e.corpus, func(v *value) bool { return v.t == f.t }):
		return "a type of newer servers"
	}
	return ""
}

func stricterBy(text string) string {
	if strings.HasPrefix(text, "payload: ") && strings.Contains(text, ": too short") {
		text = intoFooter
	}
	for _, x := range stricter {
		if strings.Contains(text, x.text) {
			return x.why
		}
	}
	return ""
}

// judgeValue compares the results of kvferry and a server for a value.
func (c *class) judgeValue(e *engine, f *forgedValue) {
	c.count("server " + e.Name)
	told := strings.Join(f.told, "; ")
	switch {
	case f.reply == errEnded:
	case f.reply != nil && told != "":
		c.count("both refuse")
	case f.reply != nil:
		if why := e.laxer(f); why != "" {
			c.count("read though refused: " + why)
			return
		}
		c.fail("%s: server error %q, no error from kvferry: %.300s\n\t%x", f.label, f.reply, f.ours, f.b)
	case told != "":
		if why := stricterBy(told); why != "" {
			c.count("refused though taken: " + why)
			return
		}
		c.fail("%s: the server accepts it, kvferry error %s\n\tserver %.300s\n\tours   %.300s\n\t%x", f.label, told, f.server,
			f.ours, f.b)
	case f.server != f.ours:
		c.fail("%s: other values\n\tserver %.300s\n\tours   %.300s\n\t%x", f.label, f.server, f.ours, f.b)
	default:
		c.count("right")
	}
}

// collect collects values of the server, made by random commands under different settings.
func (e *engine) collect(h *harness) error {
	if e.corpus != nil {
		return nil
	}
	r := rand.New(rand.NewSource(int64(h.seed)))
	seen := map[string]bool{}
	for _, entries := range []string{"512", "3", "-1"} {
		for _, name := range []string{"hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-listpack-entries",
			"set-max-intset-entries", "stream-node-max-entries", "list-max-listpack-size"} {
			_, _ = e.client.Do("CONFIG", "SET", name, entries) // not all servers have all
		}
		if err := e.populate(r, seen); err != nil {
			return err
		}
	}
	return nil
}

// seldom are commands for values that random commands rarely make.
var seldom = strings.FieldsFunc(seldomLines, func(c rune) bool { return c == '|' || c == '\n' })

const seldomLines = `HSET h a 1 b 2 c three|HPEXPIRE h 99999999999 FIELDS 1 a|HPEXPIRE h 999999999 FIELDS 1 c|XADD x 1-1 a 1 b 2|XADD x 1-2 a 3 b 4|XADD x 2-1 c 5|XADD x 3-1 a 1 b 2
XDEL x 1-2|XGROUP CREATE x g 0|XGROUP CREATE x k $|XREADGROUP GROUP g u COUNT 2 STREAMS x >|XREADGROUP GROUP g w COUNT 1 STREAMS x >|SADD i 1 2 3|SADD j 1 70000 -5|SADD k 1 5000000000|ZADD z 1 a 2 b 2.5 c inf d
RPUSH l a b c 1 2 300 -70000 5000000000|SET s 12|SET t 70000|SET u aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|SET v text|HSET m f aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|SADD n a b c`

func (e *engine) populate(r *rand.Rand, seen map[string]bool) error {
	if _, err := e.client.Do("FLUSHALL"); err != nil {
		return err
	}
	var list [][]string
	for range 500 {
		list = append(list, redistest.Command(r, redistest.PatternsOf(e.known)))
	}
	for _, line := range seldom {
		list = append(list, strings.Fields(line))
	}
	for _, words := range list {
		if !slices.Contains([]string{"SELECT", "SWAPDB", "MOVE"}, words[0]) {
			_, _ = e.client.Do(words...) // some are refused
		}
	}
	keys, err := e.client.Do("KEYS", "*")
	if err != nil {
		return err
	}
	names := []string{}
	for _, k := range keys.([]any) {
		names = append(names, redistest.Text(k))
	}
	slices.Sort(names)
	for _, key := range names {
		dump, err := e.client.Do("DUMP", key)
		if err != nil {
			return err
		}
		b := []byte(redistest.Text(dump))
		if len(b) < 11 || len(b) > 600 || seen[string(b)] {
			continue
		}
		seen[string(b)] = true
		e.version = int(binary.LittleEndian.Uint16(b[len(b)-10:]))
		v := takeApart(rdb.Type(b[0]), b[1:len(b)-10], e.version >= 80)
		e.corpus = append(append(e.corpus, v), v.older()...)
	}
	return nil
}
