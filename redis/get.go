package redis

import (
	"io"

	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// lookup is the room of a record.Lookup.
type lookup struct {
	items   sorter
	decoder rdb.Decoder
	head    record.Header
	elems   [1]record.Element
}

// Get implements format.Getter for strings whose keys were sorted when the file was opened.
func (s *source) Get(l *record.Lookup) bool {
	db := s.database(l.DB)
	if db == nil || db.sorted == nil || l.Type != record.String || len(s.repeated)+len(s.importing) > 0 {
		return false
	}
	room, _ := l.Room.(*lookup)
	if room == nil {
		room = new(lookup)
		l.Room = room
	}
	rows, err := db.sorted.Range(store.KeyRange(l.Key))
	if err != nil {
		return false
	}
	in := &room.items
	in.s, in.rows = s, rows
	it, err := in.next()
	if l.Exists = err == nil; !l.Exists {
		l.Found = false
		return err == io.EOF
	}
	if it.Op != rdb.OpKey || it.Type != rdb.TypeString || it.To-it.From > maxInline || it.ExpireMS != 0 && it.ExpireMS < l.Now {
		return false
	}
	if in.fetch(it) != nil || room.decoder.BeginItem(s.header(), it, s.file, &room.head) != nil {
		return false
	}
	n, err := room.decoder.Read(room.elems[:])
	l.Elem, l.Found = room.elems[0], true
	return n == 1 && err == nil
}
