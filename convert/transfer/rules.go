package transfer

import (
	"sync/atomic"
	"time"

	"kvferry/convert/workers"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// Rules is what all tasks of a run go by.
type Rules struct {
	Now           time.Time
	Selection     *filter.Selection
	SameName      bool           // the target holds one name under several types
	PlainZero     bool           // the score -0 is taken for 0
	FieldExpiry   bool           // it holds expiries of fields
	StreamGroups  bool           // it holds consumer groups
	NoBlankStream bool           // a stream that never had an entry is none
	RedisStrings  bool           // strings are read as Redis has them
	Whole         bool           // a record is one row of the source
	Dry           bool           // nothing will be written
	CountOnly     bool           // the target will not be compared with what is written: nothing is hashed
	Lapse         *Lapse         // what expires meanwhile; nil on disk, where nothing does
	Gone          int64          // what the proof leaves out: all that expires up to then
	Prefer        []record.Type  // which type keeps a name otherwise
	Memory        workers.Shares // of readers, and as much again of writers
	TempDir       string
	Renames       []Rename // not nil: the others get these names
	// SortSections says that sections of the source are put in order, as spans of keys are.
	SortSections bool
	Meter        *progress.Meter
	// Refused is set when a loss is not allowed: from then on tasks only count.
	Refused *atomic.Bool
	Allows  func(kind string) bool
}
