package blackwidow

import (
	"context"
	"fmt"
	"math"
	"path"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// maxElements is the maximum number of elements of collections other than lists.
const maxElements = math.MaxInt32

// Servers, as locations name them.
const (
	serverPika3  = "pika3"
	serverPika35 = "pika3.5"
)

// blackwidowFormat is the Format, in the dialect of a server or, with "", in the dialect that all servers
// open.
type blackwidowFormat struct{ server string }

// New returns the format.
func New() format.Format { return blackwidowFormat{} }

// Name returns "blackwidow".
func (blackwidowFormat) Name() string { return "blackwidow" }

// Servers lists the servers whose directories differ from Pika 3.0's.
func (blackwidowFormat) Servers() []format.Server {
	return []format.Server{
		{Name: serverPika3, First: "3.0", Last: "3.4", Detail: "Pika 3.1 to 3.4: databases in db0, db1, … (Pika 3.0 needs --layout flat)"},
		{Name: serverPika35, First: "3.5", Last: "3.5", Detail: "Pika 3.5: databases in db0, db1, …; streams, which 3.5.3 and later open"},
	}
}

// For returns the format in the dialect of a server.
func (blackwidowFormat) For(server string) format.Format { return blackwidowFormat{server} }

// Server returns the name given to For.
func (f blackwidowFormat) Server() string { return f.server }

// streams reports whether the server has streams.
func (f blackwidowFormat) streams() bool { return f.server == serverPika35 }

// families returns the families that the server has.
func (f blackwidowFormat) families() []family {
	if f.streams() {
		return families[:]
	}
	return withoutStreams
}

// Found returns the format in the dialect shown by the evidence: only Pika 3.5 has streams.
func (f blackwidowFormat) Found(ev *format.Evidence) format.Format {
	for i := range ev.Stores {
		if path.Base(ev.Stores[i].Path) == families[len(families)-1].dir {
			return f.For(serverPika35)
		}
	}
	return f
}

// layout is where the server looks for databases: since Pika 3.1, each has a directory.
func (f blackwidowFormat) layout() format.Layout {
	if f.server == "" {
		return format.LayoutAuto
	}
	return format.LayoutDB
}

// Limits describes the values that blackwidow can hold.
func (f blackwidowFormat) Limits() format.Limits {
	types, losses := mostTypes, []record.LossInfo(nil)
	if f.streams() {
		types, losses = allTypes, dataset.PikaStreamLosses
	}
	return format.Limits{
		Types:          types,
		NoStreamExpiry: true, NoBlankStream: true,
		Losses: losses,
		Beside: dataset.PikaBeside, Start: []string{dataset.PikaStart},
		Seconds:     true,
		MaxExpireMS: dataset.LastSecond * 1000,
		FirstMS:     1000,
		Signed:      types,
		EmptyKey:    true,
		MaxScore:    math.Inf(1),
		MaxElements: maxElements,
		Unbounded:   record.Of(record.List),
		SameName:    true,
		Databases:   "one in the root, or db0 to db7",
		Numbered:    true,
		MaxDBs:      8,
		Layouts:     true,
		Layout:      f.layout(),
		Stores:      []format.StoreSupport{{Store: "rocksdb", Read: true, Write: true}},
		Detail:      "Pika 3.0 to 3.5, on RocksDB 5.9.2 and later",
		ScoreDetail: "any float64 but NaN",
		OtherDetails: []string{
			"lists may have any number of elements",
			"streams are written only as pika3.5:, without groups and expiry; they are always read",
		},
	}
}

// Comparers are the orders of the column families that are not bytewise, for opening stores.
func Comparers() []store.Comparer {
	return []store.Comparer{ListsDataKeyComparator, ZSetsScoreKeyComparator}
}

// Detect looks for the five directories, in the root or in the directories of databases and partitions.
func (blackwidowFormat) Detect(ev *format.Evidence) format.Verdict {
	named := false
	look := dataset.Look{Names: dirs(), Home: isHome,
		Judge: func(name string, s *format.StoreEvidence) (string, bool) {
			why, not, own := familyOf(name).matchStore(s)
			named = named || own
			return why, !not
		}}
	v := look.Weigh(ev)
	if v.Score > 0 && named {
		v.Score = min(v.Score+15, 100)
	}
	return v
}

// matchStore reports whether a directory with the right name may be a store of the family. own is true for an order
// unique to blackwidow.
func (f *family) matchStore(s *format.StoreEvidence) (why string, not, own bool) {
	if s.Kind != "rocksdb" {
		return fmt.Sprintf("%s is a %s directory; blackwidow uses RocksDB", s.Path, s.Kind), true, false
	}
	for _, k := range s.Keyspaces {
		want := f.orderOf(k.Name)
		if want == nil {
			return fmt.Sprintf("%s has a column family %q, which blackwidow's does not", s.Path, k.Name), true, false
		}
		if k.Comparer != "" && k.Comparer != want.Name {
			return fmt.Sprintf("%s: %s is ordered by %s; blackwidow orders it by %s", s.Path, k.Name, k.Comparer, want.Name),
				true, false
		}
		own = own || k.Comparer != "" && !want.IsBytewise()
	}
	why = s.Path + " is a RocksDB database"
	if own {
		why += " with a comparator of blackwidow"
	}
	return why, false, own
}

// orderOf returns the order of a column family, or nil if the store has no such column family.
func (f *family) orderOf(cf string) *store.Comparer { return f.orders[cf] }

// Open opens a source.
func (f blackwidowFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	return open(ctx, f, dir, o)
}

// Create starts a target.
func (f blackwidowFormat) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	return create(ctx, f, dir, o)
}

// isHome reports whether dir may contain the five directories: the root, a database or a partition of one.
func isHome(dir string) bool {
	if dir == "" {
		return true
	}
	db, partition, nested := strings.Cut(dir, "/")
	return dataset.IsDB(db) && (!nested || dataset.IsNumber(partition))
}

// Follows reports whether a Pika of this format can replicate from one of the source format: Pika 3.0 from
// Pika 2.3, whose binlog has the old type. Later versions cannot.
func (f blackwidowFormat) Follows(source string) (conditions []string, ok bool) {
	if source != "nemo" || f.server == serverPika35 {
		return nil, false
	}
	return []string{
		"the new server is Pika 3.0.6, or 3.0.16 or a later 3.0 with \"identify-binlog-type : old\" in its configuration",
		"the old server is Pika 2.3 and still has that binlog file",
		"the host is the master: a dump taken on a replica names the replica, whose binlog differs",
	}, true
}
