package command

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvferry/record"
)

// Server is what all calls share.
type Server struct {
	Table *Table
	// Keys is the dataset. If it is nil at first, commands that need it are refused until Open.
	Keys Keyspace
	// Password is the password for AUTH; "" requires none.
	Password string
	// Now is the time as of which keys count as expired. It does not move.
	Now time.Time
	// Clock returns the time from which the remaining time of keys counts; nil: it is Now.
	Clock   func() time.Time
	Started time.Time
	Version string // of kvferry
	Port    int
	// MaxClients is the limit that CONFIG GET and INFO report.
	MaxClients int
	// Memory is the limit of --memory; sorting spills to TempDir.
	Memory  int64
	TempDir string
	// Info returns lines of further sections of INFO, by name in lower case; may be nil.
	Info func(section string) []string
	// Route returns an error unless the server has the keys of a command; nil: the server is not in a cluster.
	Route func(keys iter.Seq[[]byte]) error
	// Context ends the passes that scans leave for later calls.
	Context context.Context
	// RunID is 40 hex digits that identify this run.
	RunID string

	Stats   Stats
	Clients Clients

	cursors cursors
	lengths recent[place, int64]  // of large values
	marks   recent[place, string] // the elements before the places of scans
	gate    *gate
	loading atomic.Bool // Keys is not set yet
}

// Init completes a server: its fields are set.
func (s *Server) Init(more ...Functions) {
	s.Table, s.gate, s.Started = NewTable(more...), newGate(s.Memory), time.Now()
	s.loading.Store(s.Keys == nil)
}

// Open begins to serve a dataset.
func (s *Server) Open(keys Keyspace) {
	s.Keys = keys
	s.loading.Store(false)
}

// known returns the databases; none while the dataset is loading.
func (s *Server) known() []Database {
	if s.loading.Load() {
		return nil
	}
	return s.Keys.Databases()
}

// Time is the time on the clock of clients.
func (s *Server) Time() time.Time {
	if s.Clock == nil {
		return s.Now
	}
	return s.Clock()
}

// Stats counts for INFO.
type Stats struct {
	Connections, Refused, Commands, Errors, In, Out atomic.Int64
	Hits, Misses, Damaged                           atomic.Int64
}

// Client is the state of a connection.
type Client struct {
	ID         int64
	Addr, Here string // remote and local address
	Kill       func() // closes the connection
	// Gone reports whether the client has closed the connection; nil: unknown. The goroutine of its command calls it.
	Gone   func() bool
	looked time.Time // when Gone was called
	rows   int64     // bytes of large elements that its command holds
	// several is set while only this client may hold the elements of several keys.
	several bool

	// Stalled is the start of the current write to the client in Unix nanoseconds; 0: no write is pending.
	Stalled atomic.Int64

	DB            Database
	Authenticated bool
	Role          any          // options of a replica
	Feeding       atomic.Bool  // the connection feeds a replica
	multi         *transaction // between MULTI and EXEC
	subs          subscriptions
	tracking      tracking
	kept          int // bytes of requests kept beyond their command
	lookup        *record.Lookup
	pubsub        atomic.Bool
	name          atomic.Pointer[string]
	last          atomic.Pointer[string]
	db            atomic.Int64
	proto         atomic.Int64
}

// Clients are the open connections.
type Clients struct {
	mu   sync.Mutex
	open map[int64]*Client
	next int64
}

// Add registers a connection and gives it its number.
func (cs *Clients) Add(c *Client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open = map[int64]*Client{}
	}
	cs.next++
	c.ID = cs.next
	cs.open[c.ID] = c
	c.proto.Store(2)
}

// Remove forgets a connection.
func (cs *Clients) Remove(c *Client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c.ID)
}

// Len returns the number of open connections.
func (cs *Clients) Len() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// Database is a database of the dataset with the number that SELECT takes. Name is "" if the dataset has none of that
// number: it is empty then.
type Database struct {
	Number int
	Name   string
	Exists bool
}

// Count is a number of keys. It is an estimate until all were counted.
type Count struct {
	Keys, Expires int64
	Hidden        int64 // records whose names belong to a record of another type
	Exact         bool
}

// Keyspace gives access to the records of a dataset. It is used by many goroutines.
type Keyspace interface {
	// Databases returns the databases in the order of their numbers.
	Databases() []Database
	// Get answers a lookup in a database without a pass; false if it takes one.
	Get(db Database, l *record.Lookup) bool
	// Open seeks a key. It returns nil if the key does not exist.
	Open(ctx context.Context, db Database, key []byte, r Reading) (Value, error)
	// Seeks reports whether elements of a type are found without reading those before them.
	Seeks(t record.Type) bool
	// Scan returns the keys of a database after a position, in order; nil: all.
	Scan(ctx context.Context, db Database, after *Position) (Scanner, error)
	// Count returns the number of keys, perhaps an estimate.
	Count(db Database) Count
	// Libraries returns the sources of the function libraries.
	Libraries(ctx context.Context) ([][]byte, error)
	// Exact returns the number of keys, or an error.
	Exact(ctx context.Context, db Database) (Count, error)
}

// Reading selects the elements to read of a value.
type Reading struct {
	// Type is the type that is wanted, which is found soonest; 0: any.
	Type record.Type
	// ByName requests the elements by name, otherwise they come in the order of the source.
	ByName bool
	// Start is the first element of a value of the type; nil: all. A source that seeks no names yields all elements.
	Start *record.Start
	// Only ends the value after the element at Start, and omits any other.
	Only bool

	lasting bool // the value outlives the command
}

// Position is a place in a scan: after a key of the dataset, or, unless Type is 0, after its record of a type.
type Position struct {
	Key  []byte
	Type record.Type
}

// Value is a record that is being read.
type Value interface {
	// Header returns the header, valid until Close.
	Header() *record.Header
	// Read returns the next elements, valid until the next call, and io.EOF after the last one, like a record.Reader.
	// DamagedError is the end of a value that cannot be read completely.
	Read(dst []record.Element) (int, error)
	Close() error
}

// Scanner yields keys in order.
type Scanner interface {
	// Next returns the next key; io.EOF after the last. It is valid until the next call. Native is the name of the elements
	// of a value of a module.
	Next() (*record.Header, error)
	// At returns the position after that key, valid until the next call.
	At() Position
	Close() error
}

// Lower returns the beginning of an argument in lower case, enough for the name of any command or option.
func Lower(b []byte) string { return strings.ToLower(string(b[:min(len(b), 128)])) }
func upper(b []byte) string { return strings.ToUpper(string(b[:min(len(b), 128)])) }

// ctx returns the context of the server.
func (s *Server) ctx() context.Context {
	if s.Context == nil {
		return context.Background()
	}
	return s.Context
}
