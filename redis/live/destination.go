package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	"kvferry/redis/live/server"
)

// start is the state when writing began. A process that resumes the run restores it.
type start struct {
	Before map[string]int64 `json:"before"` // existing keys by database
	// Libraries is the number of existing function libraries, counted only if the server will be read back.
	Libraries int             `json:"libraries,omitempty"`
	Existing  format.Existing `json:"existing"`
	Names     string          `json:"names"`             // prefix of temporary names
	Members   []string        `json:"members,omitempty"` // addresses of the cluster's servers
}

// destination is what the writers of a target share.
type destination struct {
	ctx    context.Context
	server *server.Server
	start
	tempDir string
	limit   pace.Limiter

	conflicts conflicts

	mu    sync.Mutex
	names uint64
	left  int // temporary names that could not be deleted
}

// temporaryPrefix returns a prefix of temporary names that no other run has.
func temporaryPrefix() string { return "kvferry-" + strconv.FormatUint(rand.Uint64(), 36) + "-" }

// unique returns a new temporary name.
func (d *destination) unique() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names++
	return d.Names + strconv.FormatUint(d.names, 36)
}

// tidyTimeout limits the cleanup of temporary names after a failure.
const tidyTimeout = 3 * time.Second

// drop deletes temporary names after a failed run. A resumed run deletes the rest; Undo reports them.
func (d *destination) drop(db string, names []string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), tidyTimeout)
	defer cancel()
	r := d.server.Router(db)
	defer r.Close()
	left := 0
	for _, name := range names {
		if _, err := r.Do(ctx, []byte(name), "DEL"); err != nil { // the error of the run has the cause
			left++
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left += left
}

// undeleted returns the number of temporary names that drop left.
func (d *destination) undeleted() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// existing returns an error for a key or library that exists, unless existing ones are skipped.
func (d *destination) existing(name string) error {
	if d.server.Existing == format.SkipExisting {
		return nil
	}
	return fmt.Errorf("%s: %s exists already; %s", d.server.Shown, name, existingHint)
}

// conflicts collects keys that exist and must not be overwritten.
type conflicts struct {
	mu    sync.Mutex
	count int64
	some  []string
}

// maxNamed limits how many of them an error lists.
const maxNamed = 5

func (c *conflicts) add(count int64, some []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += count
	c.some = append(c.some, some[:min(len(some), maxNamed-len(c.some))]...)
}

// error returns an error that lists some of the existing keys, or nil.
func (c *conflicts) error(where string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return nil
	}
	names := strings.Join(c.some, ", ")
	if c.count > int64(len(c.some)) {
		names += ", …"
	}
	return &format.ExistingError{Err: fmt.Errorf("%s: the server already has %s of the keys to write: %s; no data was written; %s",
		where, record.Number(c.count), names, existingHint)}
}

const existingHint = "--replace overwrites existing keys, --skip-existing keeps them"
