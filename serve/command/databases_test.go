package command_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/command/fake"
)

// databases are datasets in memory, each a database.
type databases []*fake.Dataset

func (d databases) Databases() (out []command.Database) {
	for n := range d {
		out = append(out, command.Database{Number: n, Name: fmt.Sprint(n), Exists: true})
	}
	return out
}

func (d databases) Open(ctx context.Context, db command.Database, key []byte, r command.Reading) (command.Value, error) {
	return d[db.Number].Open(ctx, db, key, r)
}

func (d databases) Scan(ctx context.Context, db command.Database, after *command.Position) (command.Scanner, error) {
	return d[db.Number].Scan(ctx, db, after)
}

func (d databases) Exact(ctx context.Context, db command.Database) (command.Count, error) {
	return d[db.Number].Exact(ctx, db)
}

func (d databases) Get(db command.Database, l *record.Lookup) bool  { return d[db.Number].Get(db, l) }
func (d databases) Seeks(t record.Type) bool                        { return d[0].Seeks(t) }
func (d databases) Count(db command.Database) command.Count         { return d[db.Number].Count(db) }
func (d databases) Libraries(ctx context.Context) ([][]byte, error) { return d[0].Libraries(ctx) }

// TestOtherDatabase: what a scan or a lookup leaves for later ones is for its own database: a pass that waits, the place
// of a cursor, the last name of a page, and the length of a list.
func TestOtherDatabase(t *testing.T) {
	const n = 1500
	elems := func(db string) (out []record.Element) {
		for i := range n {
			out = append(out, record.Element{Name: fmt.Appendf(nil, "f%05d in %s", i, db), Value: []byte(db)})
		}
		return out
	}
	for _, seeks := range []bool{true, false} {
		s, a := fake.New(t, "list l x y z", "string a 1", "string b 1", "string c 1")
		_, b := fake.New(t, "list l x", "string b 1")
		for name, f := range map[string]*fake.Dataset{"0": a, "1": b} {
			f.Seek = seeks
			for key, typ := range map[string]record.Type{"h": record.Hash, "s": record.Set, "z": record.ZSet} {
				f.Records[key] = &fake.Record{Header: record.Header{Key: []byte(key), Type: typ, ByName: true}, Elems: elems(name)}
			}
		}
		s.Keys = databases{a, b}
		for _, scan := range []string{"HSCAN h", "SSCAN s", "ZSCAN z"} {
			c := fake.NewCaller(t, s)
			c.Client.DB = s.Database(0)
			cursor := c.Do(scan + " 0").Items[0].Text
			check := func(db, cursor string, at int) (next string) {
				c.Client.DB = s.Database(int(db[0] - '0'))
				reply := c.Do(scan + " " + cursor)
				page := reply.Items[1].Items
				for i, e := range page {
					if page[0].Text != fmt.Sprintf("f%05d in %s", at, db) || strings.HasPrefix(e.Text, "f") && !strings.HasSuffix(e.Text, " in "+db) {
						t.Fatalf("seeks %t, %s in database %s: element %d is %q, the first one %q", seeks, scan, db, i, e.Text, page[0].Text)
					}
				}
				return reply.Items[0].Text
			}
			for _, db := range []string{"1", "0", "1", "0"} { // at first with a pass in database 0 that waits
				next := check(db, cursor, command.SmallScan)
				check(map[string]string{"0": "1", "1": "0"}[db], next, 2*command.SmallScan)
			}
		}
		c := fake.NewCaller(t, s)
		c.Client.DB = s.Database(0)
		cursor := c.Do("SCAN 0 COUNT 2").Items[0].Text
		if got := c.Do("LLEN l").Text; got != "3" {
			t.Errorf("a list of %s", got)
		}
		c.Client.DB = s.Database(1)
		if got := c.Do("SCAN " + cursor).String(); !strings.Contains(got, "ERR invalid cursor") {
			t.Errorf("a cursor of another database: %s", got)
		}
		if got := c.Do("LLEN l").Text + c.Do("LINDEX l -1").Text; got != "1x" {
			t.Errorf("a list of %s", got)
		}
		c.Client.DB = s.Database(0)
		var rest []string
		for _, key := range c.Do("SCAN " + cursor).Items[1].Items {
			rest = append(rest, key.Text)
		}
		if !slices.Equal(rest, []string{"c", "h", "l", "s", "z"}) {
			t.Errorf("the cursor goes on with %q", rest)
		}
	}
}
