package work

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvferry/convert/plan"
	"kvferry/record"
)

// journalVersion changes whenever older journals cannot be continued.
const journalVersion = 7

// Identity describes the source, target and options of a run. A run can only be continued with the same identity.
type Identity struct {
	Version int               `json:"version"`
	Source  string            `json:"source"`
	Files   []File            `json:"files"`
	Options map[string]string `json:"options"`
	// Now is the clock of the run. A resumed run takes it over unless it was given one.
	Now time.Time `json:"now"`
	// Resort describes how the source's tables are out of order; "" if they are sorted.
	Resort string `json:"resort,omitempty"`
	// Began is the start of the first process, by the system clock. Target is the state that a target on a server
	// needs to continue.
	Began  time.Time `json:"began"`
	Target string    `json:"target,omitempty"`
	// Unproved is true if tasks only count written data, because the proof is off.
	Unproved bool `json:"unproved,omitempty"`
	// Parts is the number of parts that processes share the plan in, and Tool the version of their program,
	// which is the same for all; 0 and "" for a run by itself.
	Parts int    `json:"parts,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// Plan is the work of the run. It depends only on source and options, so a resumed run reuses it.
	Plan *plan.Plan `json:"plan"`
}

// NewIdentity describes a run that begins now. walDir is the directory of the source's logs, "" if they are in the
// source. options are the options that affect the result, by their names on the command line; the number of workers
// and the memory do not. Keys expire as of clock.
func NewIdentity(location, walDir string, options map[string]string, clock time.Time) (*Identity, error) {
	path, files, err := Source(location, walDir)
	if err != nil {
		return nil, err
	}
	return &Identity{Version: journalVersion, Source: path, Files: files, Options: options, Now: clock, Began: time.Now()}, nil
}

// Name returns an identifier of the run, derived from its source files, options and clock. It does not depend on the
// source's location and modification times.
func (id *Identity) Name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %q", id.Version, id.Now.UnixNano(), id.Options)
	for _, f := range id.Files {
		fmt.Fprintf(h, " %q %d", f.Path, f.Size)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Run returns a name of the run that no other run has.
func (id *Identity) Run() string { return fmt.Sprintf("%.16s-%x", id.Name(), id.Began.UnixNano()) }

// Continues returns nil if a run of identity now can continue one of identity id. Otherwise the error gives the
// reason.
func (id *Identity) Continues(now *Identity) error {
	if id.Version != now.Version {
		return fmt.Errorf("it was written by another version of kvferry")
	}
	if id.Tool != now.Tool {
		return fmt.Errorf("it was written by version %s of kvferry, not by %s", cmp.Or(id.Tool, "(unknown)"), cmp.Or(now.Tool, "(unknown)"))
	}
	if id.Source != now.Source {
		return fmt.Errorf("it converts %s, not %s", id.Source, now.Source)
	}
	if id.Parts != now.Parts {
		return fmt.Errorf("it has %s parts, not %d", record.Number(id.Parts), now.Parts)
	}
	// Compare the clock before the options: relative times among them depend on it.
	if !id.Now.Equal(now.Now) {
		return fmt.Errorf("its --now is %s, not %s: leave out --now to continue it",
			id.Now.Format(time.RFC3339Nano), now.Now.Format(time.RFC3339Nano))
	}
	// Compare the target before the other options, which depend on it.
	if a, b := id.Options["target"], now.Options["target"]; a != b {
		return fmt.Errorf("it converts to %s, not to %s: name the same target to continue it", strings.TrimSuffix(a, "+"),
			strings.TrimSuffix(b, "+"))
	}
	for _, name := range slices.Sorted(maps.Keys(union(id.Options, now.Options))) {
		switch a, b := id.Options[name], now.Options[name]; {
		case a == b:
		case a == "":
			return fmt.Errorf("it was started without --%s; leave out the flag to continue it", name)
		default:
			return fmt.Errorf("it has %s %s, not %s: pass the same value to continue it", name, cmp.Or(a, "(none)"), cmp.Or(b, "(none)"))
		}
	}
	if id.Unproved && !now.Unproved {
		return fmt.Errorf("it was begun with --no-prove: pass it again to continue it")
	}
	if err := same(id.Files, now.Files); err != nil {
		return fmt.Errorf("the source has changed: %w", err)
	}
	return nil
}

func union(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
