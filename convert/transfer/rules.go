package transfer

import (
	"sync/atomic"
	"time"

	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// Rules holds the settings that all tasks of a run share.
type Rules struct {
	Now           time.Time
	Selection     *filter.Selection
	SameName      bool          // the target holds one name under several types
	PlainZero     bool          // hash the score -0 as 0
	ExactScores   bool          // both sides hold 64-bit integers as scores
	FieldExpiry   bool          // the target holds expiries of fields
	StreamGroups  bool          // the target holds consumer groups
	NoBlankStream bool          // the target cannot hold a stream that never had an entry
	RedisStrings  bool          // read strings like Redis does
	Dry           bool          // a dry run
	Deep          bool          // check every element of the records that are written
	NewNames      bool          // a record whose name is taken gets a new one where it is, which only a dry run can
	CountOnly     bool          // no proof follows: count, but do not hash
	Lapse         *Lapse        // expiry steps of a server; nil on disk
	Gone          int64         // the proof leaves out records that expire by then
	Prefer        []record.Type // types that keep a name, best first
	Memory        pass.Shares   // of readers, and the same again of writers
	TempDir       string
	Renames       []Rename // new names of records whose names are taken; nil: they are lost
	// Back collects the losses of the way back; nil: they are not asked for.
	Back *Back
	// SortSections sorts the records of a section of the source, like those of a span of keys.
	SortSections bool
	Meter        *progress.Meter
	// Refused is set at the first loss that is not allowed. From then on tasks only count.
	Refused *atomic.Bool
	Allows  func(kind string) bool
}
