package command

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/redis"
	"kvferry/redis/aof"
	"kvferry/redis/live"
	"kvferry/store"
	"kvferry/store/lmdb"
	"kvferry/store/rocks"
)

// Default returns the app with every format and store of this build. This is the one place that
// lists them.
func Default(build Build) *App {
	return &App{
		Formats: []format.Format{nemo.New(), blackwidow.New(), floyd.New(), ardb.New(), kvrocks.New(), redis.New(), aof.New(), live.New()},
		Drivers: []Driver{
			{Name: "rocksdb", Open: rocks.Open, Create: rocks.Create, Peek: peekTables("rocksdb")},
			{Name: "leveldb", Open: rocks.Open, Create: rocks.CreateLevelDB, Peek: peekTables("leveldb")},
			{Name: "lmdb", Open: lmdb.Open, Peek: peekLMDB},
		},
		Fallback:    fallback(),
		Build:       build,
		Now:         time.Now,
		LimitMemory: limitMemory,
	}
}

// commands lists the subcommands.
func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.convert(),
		a.dump(),
		a.verify(),
		a.diff(),
		a.fingerprint(),
		a.inspect(),
		a.explain(),
		a.formats(),
		a.version(),
		completion(),
	}
}

// peekTables looks at a directory of tables of one kind.
func peekTables(kind string) func(dir string) (format.StoreEvidence, error) {
	return func(dir string) (format.StoreEvidence, error) {
		if _, err := disk.Lstat(filepath.Join(dir, "CURRENT")); err != nil {
			return format.StoreEvidence{}, store.ErrNotStore
		}
		found, keyspaces, err := rocks.Peek(dir)
		if found != kind {
			return format.StoreEvidence{}, store.ErrNotStore
		}
		ev := format.StoreEvidence{Kind: found, Err: err}
		for _, k := range keyspaces {
			ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: k.Name, Comparer: k.Comparer})
		}
		return ev, nil
	}
}

// peekLMDB looks at an LMDB environment.
func peekLMDB(dir string) (format.StoreEvidence, error) {
	names, err := lmdb.Peek(dir)
	ev := format.StoreEvidence{}
	for _, name := range names {
		ev.Keyspaces = append(ev.Keyspaces, format.KeyspaceEvidence{Name: name})
	}
	return ev, err
}

// limitMemory keeps the process below the promise: the runtime collects as hard as it must when
// the limit comes near. A tenth is left for what the runtime does not count. Far below it, garbage may
// gather: there is memory for it, and most commands hold so little that they would collect all the time.
func limitMemory(bytes int64) {
	debug.SetMemoryLimit(bytes - bytes/10)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// garbagePercent is how much garbage may gather, in percent of what is in use.
const garbagePercent = 400
