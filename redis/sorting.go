package redis

import (
	"context"
	"errors"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// sorting sorts the items of a file by key while it is scanned, for lookups.
type sorting struct {
	ctx context.Context
	o   *store.Options
	dbs []*sortedDB
	row []byte
}

// sortedDB receives the items of a database.
type sortedDB struct {
	db      *database
	sorter  *extsort.Sorter
	feed    *extsort.Feeder
	keyless []int64 // offsets of libraries and module data, which are added after the keys
}

func (s *sorting) of(db *database) *sortedDB {
	for _, d := range s.dbs {
		if d.db == db {
			return d
		}
	}
	d := &sortedDB{db: db,
		sorter: extsort.New(extsort.Options{Memory: s.o.Memory / int64(len(s.dbs)+1), TempDir: s.o.TempDir, Points: true})}
	d.feed = extsort.Feed(d.sorter)
	s.dbs = append(s.dbs, d)
	return d
}

func (s *sorting) add(db *database, it *rdb.Item) error {
	d := s.of(db)
	if keylessOf(it) != record.Keyed {
		d.keyless = append(d.keyless, it.Off)
		return nil
	}
	s.row = appendRow(s.row[:0], it, true)
	return d.feed.Add(it.Key, s.row)
}

// end gives the sorted items to the source.
func (s *sorting) end(to *source) error {
	if s == nil {
		return nil
	}
	for _, d := range s.dbs {
		o := &order{db: d.db, types: record.AllTypes, bare: true, sorter: d.sorter}
		var keyless []section
		for _, off := range d.keyless {
			keyless = d.db.addSection(keyless, off)
		}
		err := d.close()
		if err == nil && len(keyless) > 0 {
			_, err = o.add(d.sorter, &cutter{ctx: s.ctx, s: to, db: d.db, sections: keyless}, true)
		}
		if err == nil {
			err = d.sorter.Prepare()
		}
		if err != nil {
			return err
		}
		to.orders, d.db.sorted = append(to.orders, o), d.sorter
	}
	return nil
}

// close waits until the sorter has the items.
func (d *sortedDB) close() (err error) {
	if d.feed != nil {
		err = d.feed.Close()
		d.feed = nil
	}
	return err
}

// close frees the items.
func (s *sorting) close() (err error) {
	if s == nil {
		return nil
	}
	for _, d := range s.dbs {
		err = errors.Join(err, d.close(), d.sorter.Close())
	}
	return err
}
