package keyspace

import (
	"bytes"
	"context"
	"fmt"

	"kvferry/record"
	"kvferry/serve/command"
)

// renamed returns the name of a record whose own name belongs to a record of another type: name:type, followed by as many
// "_" as it takes to be new. Conversions name it so, too.
func (k *Keyspace) renamed(ctx context.Context, db command.Database, key []byte, t record.Type) ([]byte, error) {
	for name := fmt.Appendf(nil, "%s:%s", key, t); ; name = append(name, '_') {
		if there, err := k.exists(ctx, db, record.AllTypes, name); err != nil || !there {
			return name, err
		}
	}
}

// exists reports whether a name belongs to a record of some types.
func (k *Keyspace) exists(ctx context.Context, db command.Database, types record.TypeSet, key []byte) (bool, error) {
	if types &= k.scan.Load().Types(db.Name); types == 0 || !k.scan.Load().Selected().Key(key) {
		return false, nil
	}
	v, err := k.open(ctx, db, types, key, command.Reading{}, nil)
	if v == nil || err != nil {
		return false, err
	}
	return true, v.Close()
}

// openRenamed opens a record by its new name.
func (k *Keyspace) openRenamed(ctx context.Context, db command.Database, name []byte, how command.Reading) (command.Value, error) {
	plain := bytes.TrimRight(name, "_")
	at := bytes.LastIndexByte(plain, ':')
	if at < 0 {
		return nil, nil
	}
	t, err := record.ParseType(string(plain[at+1:]))
	if err != nil {
		return nil, nil // it is no new name
	}
	key := plain[:at]
	if there, err := k.exists(ctx, db, record.Of(t)-1, key); err != nil || !there {
		return nil, err
	}
	if is, err := k.renamed(ctx, db, key, t); err != nil || !bytes.Equal(is, name) {
		return nil, err
	}
	return k.openOf(ctx, db, record.Of(t), key, how)
}
