package work

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvferry/convert/paths"
	"kvferry/convert/plan"
)

// journalVersion changes when an older journal cannot be continued.
const journalVersion = 7

// Identity says what a run converts into what, and how. A run may be continued only by one of the
// same identity.
type Identity struct {
	Version int               `json:"version"`
	Source  string            `json:"source"`
	Files   []paths.File      `json:"files"`
	Options map[string]string `json:"options"`
	// Now is the clock of the run. A resumed run takes it over unless it was given one.
	Now time.Time `json:"now"`
	// Resort says how the source's tables were found out of order; "" when they were not.
	Resort string `json:"resort,omitempty"`
	// Began is when the first process began, by the clock of the system, and Target what a target on a server has to know of
	// that to go on.
	Began  time.Time `json:"began"`
	Target string    `json:"target,omitempty"`
	// Unproved is true if tasks only count what they write, because it will not be compared.
	Unproved bool `json:"unproved,omitempty"`
	// Plan is what the run does. Source and options being the same, it need not be made again.
	Plan *plan.Plan `json:"plan"`
}

// NewIdentity describes a run that begins now, with the source at a location and its logs in walDir, "" when they are
// there, too. options are those that the result depends on, as the command line names them: the number of workers and
// the memory are not among them. clock is the time by which expiry is decided.
func NewIdentity(location, walDir string, options map[string]string, clock time.Time) (*Identity, error) {
	path, files, err := paths.Source(location)
	if err != nil {
		return nil, err
	}
	if walDir != "" {
		logs, err := paths.List(walDir)
		if err != nil {
			return nil, err
		}
		for _, f := range logs {
			f.Path = "wal-dir:" + f.Path
			files = append(files, f)
		}
	}
	return &Identity{Version: journalVersion, Source: path, Files: files, Options: options, Now: clock, Began: time.Now()}, nil
}

// Name tells the run from others: what is read, when, and into what. Where the source lies and when its files were
// written does not count.
func (id *Identity) Name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %q", id.Version, id.Now.UnixNano(), id.Options)
	for _, f := range id.Files {
		fmt.Fprintf(h, " %q %d", f.Path, f.Size)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Continues returns an error that says why a run of identity now cannot continue one of identity id.
func (id *Identity) Continues(now *Identity) error {
	if id.Version != now.Version {
		return fmt.Errorf("it was written by another version of kvferry")
	}
	if id.Source != now.Source {
		return fmt.Errorf("it converts %s, not %s", id.Source, now.Source)
	}
	// The clock stands before the options: relative times among them are told by it.
	if !id.Now.Equal(now.Now) {
		return fmt.Errorf("its --now is %s, not %s: leave out --now to continue it",
			id.Now.Format(time.RFC3339Nano), now.Now.Format(time.RFC3339Nano))
	}
	// Other options depend on the target.
	if a, b := id.Options["target"], now.Options["target"]; a != b {
		return fmt.Errorf("it converts to %s, not to %s: name the same target to continue it", strings.TrimSuffix(a, "+"), strings.TrimSuffix(b, "+"))
	}
	for _, name := range slices.Sorted(maps.Keys(union(id.Options, now.Options))) {
		switch a, b := id.Options[name], now.Options[name]; {
		case a == b:
		case a == "":
			return fmt.Errorf("it has no --%s: leave it out to continue it", name)
		default:
			return fmt.Errorf("it has %s %s, not %s: pass the same value to continue it", name, cmp.Or(a, "(none)"), cmp.Or(b, "(none)"))
		}
	}
	if id.Unproved && !now.Unproved {
		return fmt.Errorf("it was begun with --no-prove: pass it again to continue it")
	}
	if err := paths.Same(id.Files, now.Files); err != nil {
		return fmt.Errorf("the source has changed: %w", err)
	}
	return nil
}

func union(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
