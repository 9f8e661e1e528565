package convert

import (
	"sync/atomic"
	"time"

	"kvferry/convert/pool"
	"kvferry/internal/filter"
	"kvferry/internal/progress"
	"kvferry/record"
)

// rules is what all tasks of a run go by.
type rules struct {
	now       time.Time
	selection *filter.Selection
	sameName  bool          // the target holds one name under several types
	plainZero bool          // the score -0 is taken for 0
	fields    bool          // it holds expiries of fields
	groups    bool          // it holds consumer groups
	noBlank   bool          // a stream that never had an entry is none
	whole     bool          // a record is one row of the source
	lapse     *lapse        // what expires meanwhile; nil on disk, where nothing does
	gone      int64         // what the proof leaves out: all that expires up to then
	prefer    []record.Type // which type keeps a name otherwise
	memory    pool.Shares   // of readers, and as much again of writers
	tempDir   string
	renames   []rename // not nil: the others get these names
	// sortSections says that sections of the source are put in order, as spans of keys are.
	sortSections bool
	meter        *progress.Meter
	// refused is set when a loss is not allowed: from then on tasks only count.
	refused *atomic.Bool
	allows  func(kind string) bool
}
