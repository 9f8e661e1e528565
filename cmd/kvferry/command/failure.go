package command

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
)

// failure is the report of a conversion, or of a part of one, that failed.
type failure struct {
	Tool   string          `json:"tool"`
	Source convert.Dataset `json:"source"`
	Target convert.Dataset `json:"target"`
	Part   int             `json:"part,omitempty"`
	Parts  int             `json:"parts,omitempty"`
	Exit   int             `json:"exit,omitempty"`
	Error  string          `json:"error,omitempty"`
	At     time.Time       `json:"at"`
}

// failureName begins the ending of the names of such reports.
const failureName = ".kvferry-failure"

// failurePath returns the path of the report of a failure; part is the zero value for a whole conversion or a finish.
func failurePath(target string, part pass.Part) string {
	name := filepath.Clean(target) + failureName
	if part.N > 0 {
		name += "-" + part.Name()
	}
	return name + ".json"
}

// isFailure reports whether a path is that of the report of a failure.
func isFailure(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, failureName) && strings.HasSuffix(name, ".json")
}

// noted writes the report of a failure beside the target, or removes that of an earlier run. It returns the outcome.
func (a *App) noted(f *convertFlags, source, target string, outcome error) error {
	to, err := a.Target(target)
	if !f.failureReport || err != nil || to.Format.Limits().Place == format.OnServer {
		return outcome // there is no place beside it
	}
	path := failurePath(to.Path, f.part.Part)
	if f.prove.N > 0 {
		path = strings.TrimSuffix(path, ".json") + "-prove-" + f.prove.Name() + ".json"
	}
	if outcome == nil {
		if err := disk.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.MarshalIndent(&failure{Tool: a.Build.String(), Source: convert.Dataset{Path: source}, Target: convert.Dataset{Path: to.Shown(), Format: to.Format.Name()},
		Part: f.part.K, Parts: f.part.N, Exit: ExitCode(outcome), Error: oneLine(outcome), At: a.Now().UTC()}, "", "  ")
	if err == nil {
		err = disk.WriteFile(path+".new", append(data, '\n'))
	}
	if err == nil {
		err = disk.Rename(path+".new", path)
	}
	return errors.Join(outcome, err)
}
