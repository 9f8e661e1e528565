package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/argument"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/aof"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/redis/state"
	"kvferry/redis/state/commands"
	"kvferry/store"
)

// perLog is the number of commands in a log.
const perLog = 60

// replayed is kvferry's result of a log.
type replayed struct {
	records map[string]string
	refused int             // commands
	told    map[int]string  // messages about refused commands
	lost    map[string]bool // keys whose value is reported as unknown
	wild    bool            // any key may be wrong, as reported
}

// commands runs case n: kvferry replays a log of random commands, half of them broken, and a server executes them. Both
// must refuse the same number and end with the same data, except keys that kvferry reports as lost.
func (h *harness) commands(c *class, n int) error {
	engines, err := h.servers()
	if err != nil || len(engines) == 0 {
		c.done = true
		return err
	}
	e := engines[n%len(engines)]
	label := fmt.Sprintf("commands/%d %s", n, e.Name)
	h.now(label)
	list, ours, err := e.randomLog(fixtures.NewRand(h.seed, 'a', uint64(n)), h.run.work)
	if err != nil {
		return err
	}
	refusals, err := e.carryOut(list)
	if err != nil {
		return err
	}
	var want map[string]string
	if err := try(func() { want = e.client.Records(h.bench) }); err != nil {
		return err
	}
	got, err := h.replay(e.preamble(), list)
	if err != nil {
		c.fail("%s: %v", label, err)
		return nil
	}
	c.count("server " + e.Name)
	c.counts["commands"] += len(list)
	got.told = ours
	c.judgeLog(e, got, want, refusals, list, label)
	return nil
}

// old reports whether a server has the version whose replies package state imitates.
func (e *engine) old() bool { return strings.HasPrefix(e.Name, "Redis 7.0.") }

// unfollowed is the message for a command of unknown effect. Later refusals may differ.
const unfollowed = "unfollowed"

// randomLog makes commands whose result does not depend on the clock or settings of a server, and returns the state's
// messages about refused commands. Only one log in four has commands that the state does not follow.
func (e *engine) randomLog(seed *fixtures.Rand, dir string) (out [][]string, told map[int]string, err error) {
	r := rand.New(rand.NewSource(int64(seed.Uint64())))
	patterns, all := redistest.PatternsOf(e.known), r.Intn(4) == 0
	st, err := state.New(state.Options{TempDir: dir, Memory: 1 << 20})
	if err != nil {
		return nil, nil, err
	}
	defer st.Close()
	s := &state.Server{DB: st, Now: time.Now().UnixMilli()}
	told = map[int]string{}
	for len(out) < perLog {
		words := redistest.Command(r, patterns)
		if r.Intn(2) == 0 {
			words = redistest.Broken(r, words)
		}
		if !e.known[words[0]] || redistest.Gone(words) || redistest.Judged(words) || !e.old() && redistest.Otherwise(words) {
			continue
		}
		if !e.known["XCFGSET"] && optionsLast(words) {
			continue
		}
		args := [][]byte{}
		for _, w := range words {
			args = append(args, []byte(w))
		}
		var refused *argument.ReplyError
		var unknown *state.UnsupportedError
		switch err := commands.Do(s, args); {
		case errors.As(err, &unknown) && !all:
			continue
		case errors.As(err, &unknown):
			told[len(out)] = unfollowed
			if _, err := commands.Lose(s, args, []byte(unfollowed)); err != nil {
				return nil, nil, err
			}
		case errors.As(err, &refused):
			told[len(out)] = refused.Text
		case err != nil:
			return nil, nil, err
		}
		out = append(out, words)
	}
	return out, told, nil
}

// optionsLast reports whether a command has options after its fields, which only Redis 8.6 and later accept: logs for
// other servers omit such commands.
func optionsLast(words []string) bool {
	i := slices.Index(words, "FIELDS")
	if i < 0 || i+1 >= len(words) {
		return false
	}
	n, err := strconv.Atoi(words[i+1])
	if words[0] == "HSETEX" {
		n *= 2
	}
	return err == nil && len(words) != i+2+n
}

// carryOut sends commands to a server, and returns its error replies.
func (e *engine) carryOut(list [][]string) (refused map[int]string, err error) {
	out := redistest.Append(redistest.Append(nil, "FLUSHALL"), "SELECT", "0")
	for _, words := range list {
		out = redistest.Append(out, words...)
	}
	if _, err = e.client.Write(out); err != nil {
		return nil, err
	}
	refused = map[int]string{}
	for i := -2; i < len(list); i++ {
		v, err := e.client.Reply()
		if err != nil {
			return nil, err
		}
		if text, ok := v.(redistest.Error); ok {
			refused[i] = string(text)
		}
	}
	return refused, nil
}

var number = regexp.MustCompile(`^[0-9]+`)

// preamble is an RDB file without keys that names the server: kvferry judges refused commands by the writer of a log.
func (e *engine) preamble() []byte {
	name, version, _ := strings.Cut(strings.ToLower(e.Name), " ")
	b := rdb.AppendAux(rdb.AppendAux([]byte("REDIS0009"), name+"-ver", version), "used-mem", "1")
	b = rdb.AppendEOF(b)
	return binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
}

// replay makes kvferry read commands as a log.
func (h *harness) replay(log []byte, list [][]string) (*replayed, error) {
	for _, words := range list {
		log = redistest.Append(log, words...)
	}
	path := filepath.Join(h.run.work, "appendonly.aof")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(path)
	x := &replayed{records: map[string]string{}, lost: map[string]bool{}}
	tell := func(f record.Finding) {
		switch {
		case f.Kind == aof.FindRefused:
			x.refused, _ = strconv.Atoi(number.FindString(f.Detail))
		case f.Kind == aof.FindCommand && f.Key == nil:
			x.wild = true
		case f.Kind == aof.FindCommand:
			x.lost[f.DB+"/"+string(f.Key)] = true
		}
	}
	ctx := context.Background()
	src, err := aof.New().Open(
		ctx, path, &format.OpenOptions{Options: store.Options{TempDir: h.run.work, Memory: 1 << 20, Salvage: true, Report: tell}})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	for _, db := range src.Databases() {
		var ledger record.Ledger
		r, err := src.Records(ctx, db, record.AllTypes, format.Span{},
			&format.Env{Now: time.Now(), TempDir: h.run.work, Memory: 1 << 20, Ledger: &ledger})
		if err != nil {
			return nil, err
		}
		if err := try(func() { redistest.Read(h.bench, x.records, r) }); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// judgeLog compares a replay with the data of a server.
func (c *class) judgeLog(e *engine, got *replayed, want map[string]string, refusals map[int]string, list [][]string,
	label string) {
	if got.wild {
		c.count("any key may be wrong, as reported")
		return
	}
	for key := range got.lost {
		delete(want, key)
		delete(got.records, key)
	}
	if !e.old() {
		redistest.WithoutConsumers(want)
		redistest.WithoutConsumers(got.records)
	}
	wrong := redistest.Diff(want, got.records, 3)
	for i := range list {
		if got.told[i] == unfollowed {
			break
		}
		if (got.told[i] == "") != (refusals[i] == "") {
			wrong = append(wrong, fmt.Sprintf("%q: server error %q, kvferry error %q", list[i], refusals[i], got.told[i]))
		} else if got.told[i] != "" {
			c.count("commands refused by both")
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(got.told)), unfollowed) && len(got.lost) == 0 && len(got.told) != got.refused {
		wrong = append(wrong, fmt.Sprintf("%d commands are refused, but %d in the finding", len(got.told), got.refused))
	}
	switch {
	case len(wrong) > 0:
		c.fail("%s: %s\n%q", label, strings.Join(wrong, "\n"), list)
	case len(got.lost) > 0:
		c.count("right but for keys named as lost")
	default:
		c.count("right")
	}
}
