package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"kvferry/convert/plan"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
)

// ExportJob knows the files of an export.
type ExportJob interface {
	// Plan cuts the source into tasks, which depend on the source and the options alone.
	Plan(ctx context.Context) ([]pass.Task, error)
	// Write writes files of some tasks below a directory and describes them for Assemble. Files of different tasks have
	// different names.
	Write(ctx context.Context, dir string, tasks []pass.Task) (any, error)
	// Assemble completes a directory with the files of all parts. parts has the result of Write for each.
	Assemble(ctx context.Context, dir string, parts []json.RawMessage) error
}

// Export is an export in parts.
type Export struct {
	Job     ExportJob
	Source  ExportPlace
	WALDir  string
	Target  ExportPlace
	TempDir string
	Tool    string // version of the program
	// Options has the options that change the files, see NewIdentity.
	Options map[string]string
	Now     time.Time
	Crash   func(phase string) // called where a crash must be safe; nil: not called
}

// ExportPlace is a source or a target.
type ExportPlace struct {
	Path   string `json:"path"`
	Format string `json:"format"`
}

// ExportReport describes a finished part or, with the number 0, a finished export.
type ExportReport struct {
	Part  int    `json:"part,omitempty"`
	Parts int    `json:"parts"`
	Tool  string `json:"tool"`
	// Already is true if another process had finished the part or the export.
	Already  bool        `json:"already,omitempty"`
	Source   ExportPlace `json:"source"`
	Target   ExportPlace `json:"target"`
	Now      time.Time   `json:"now"`
	Tasks    int         `json:"tasks"`
	AllTasks int         `json:"all_tasks"`
	Seconds  float64     `json:"seconds"`
	// Missing are the parts that were not finished when this one was.
	Missing []int           `json:"missing,omitempty"`
	Files   json.RawMessage `json:"files,omitempty"` // of a part, as its job describes them
	// Identity of the run, without the plan.
	Identity *Identity `json:"identity"`
}

// Part writes one part. It may be called for the same part by several processes; the first to finish wins.
func (r *Export) Part(ctx context.Context, part pass.Part) (*ExportReport, error) {
	id, err := r.identity(part.N)
	if err != nil {
		return nil, err
	}
	if rep := r.finished(id); rep != nil {
		rep.Part = part.K
		return rep, nil
	}
	if err := r.checkTarget(); err != nil {
		return nil, err
	}
	shared := FindParts(r.Target.Path)
	fits := func(was *Identity) error { return r.continues(was, id) }
	already, err := shared.Do(part, "", fits, func(w *Dir, was *Identity) error {
		err := r.attempt(ctx, shared, w, was, id, part)
		if err != nil {
			err = errors.Join(err, w.Discard())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	rep, err := readReport(shared.Report(part))
	if err == nil {
		rep.Already, rep.Missing = already, shared.Missing(part.N)
	}
	return rep, err
}

// attempt writes a part into a directory of its own, by the plan of was unless that is nil.
func (r *Export) attempt(ctx context.Context, shared *Parts, w *Dir, was, id *Identity, part pass.Part) error {
	began := time.Now()
	if was == nil {
		tasks, err := r.Job.Plan(ctx)
		if err != nil {
			return err
		}
		id.Plan = &plan.Plan{Tasks: tasks}
		if was, _, err = shared.Publish(id); err == nil {
			err = r.continues(was, id) // of another process that was first
		}
		if err != nil {
			return err
		}
		r.crash("shared")
	}
	if err := disk.Mkdir(w.Data()); err != nil {
		return err
	}
	own := part.Of(was.Plan.Tasks)
	files, err := r.Job.Write(ctx, w.Data(), own)
	if err != nil {
		return err
	}
	r.crash("written")
	rep := r.report(was, began)
	rep.Part, rep.Tasks = part.K, len(own)
	if rep.Files, err = json.Marshal(files); err == nil {
		err = writeReport(w, rep)
	}
	if err == nil {
		r.crash("reported")
		err = ctx.Err()
	}
	if err == nil {
		err = shared.Adopt(w, part)
	}
	return err
}

// Finish publishes the export of all parts. If parts are missing, it returns a *MissingError. It does the work of
// an earlier process that died again.
func (r *Export) Finish(ctx context.Context) (rep *ExportReport, err error) {
	id, err := r.identity(0)
	if err != nil {
		return nil, err
	}
	if rep := r.finished(id); rep != nil {
		return rep, nil
	}
	shared := FindParts(r.Target.Path)
	open := func() (*Dir, *State, error) { return shared.Open("") }
	done, err := ConcludeEarlier(r.Target.Path, true, open, func() (err error) {
		rep, err = readReport(ReportPath(r.Target.Path))
		return err
	})
	if done || err != nil {
		return rep, err
	}
	if err := r.checkTarget(); err != nil {
		return nil, err
	}
	was, err := shared.Whole(func(was *Identity) error {
		id.Parts = was.Parts
		return r.continues(was, id)
	})
	if err != nil {
		return nil, err
	}
	w, _, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return r.assemble(ctx, shared, w, was)
}

// assemble makes the export of its parts and publishes it: the files, the report, and last the name.
func (r *Export) assemble(ctx context.Context, shared *Parts, w *Dir, id *Identity) (*ExportReport, error) {
	began := time.Now()
	if err := errors.Join(w.WithdrawOrphan(), w.Clear(), disk.Mkdir(w.Data())); err != nil {
		return nil, err
	}
	var parts []json.RawMessage
	for k := 1; k <= id.Parts; k++ {
		part := pass.Part{K: k, N: id.Parts}
		own, err := readReport(shared.Report(part))
		if err == nil && !own.Identity.Began.Equal(id.Began) {
			err = &ResumeError{Dir: shared.Path, Parts: true, Err: fmt.Errorf("part %s was made by another plan", part)}
		}
		if err == nil {
			err = shared.LinkAll(w, part)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, own.Files)
	}
	r.crash("linked")
	if err := r.Job.Assemble(ctx, w.Data(), parts); err != nil {
		return nil, err
	}
	r.crash("assembled")
	rep := r.report(id, began)
	rep.Tasks = rep.AllTasks
	err := errors.Join(w.Sync(), writeReport(w, rep))
	if err == nil {
		err = w.Append(Entry{Plan: rep.Identity}, Entry{Proved: true})
	}
	if err == nil {
		r.crash("noted")
		_, err = w.PublishReport()
	}
	if err == nil {
		r.crash("announced")
		err = disk.RenameNew(w.Data(), r.Target.Path)
	}
	if err != nil {
		return nil, err
	}
	r.crash("renamed")
	return rep, w.Conclude()
}

func (r *Export) crash(phase string) {
	if r.Crash != nil {
		r.Crash(phase)
	}
}

// identity describes this process's run, in a number of parts.
func (r *Export) identity(parts int) (*Identity, error) {
	options := maps.Clone(r.Options)
	options["target"] = r.Target.Format
	id, err := NewIdentity(r.Source.Path, r.WALDir, options, r.Now)
	if err == nil {
		id.Parts, id.Tool = parts, r.Tool
	}
	return id, err
}

// continues refuses a run of another identity.
func (r *Export) continues(was, id *Identity) error {
	if err := was.Continues(id); err != nil {
		return &ResumeError{Dir: Path(r.Target.Path), Parts: true, Err: err}
	}
	return nil
}

// finished returns the report of the export if earlier processes have finished it, else nil.
func (r *Export) finished(id *Identity) *ExportReport {
	if _, err := disk.Lstat(r.Target.Path); err != nil || FindParts(r.Target.Path).Exist() {
		return nil
	}
	rep, err := readReport(ReportPath(r.Target.Path))
	if err != nil {
		return nil
	}
	was := *rep.Identity
	if id.Parts == 0 {
		was.Parts = 0
	}
	if was.Continues(id) != nil {
		return nil
	}
	rep.Already = true
	return rep
}

// checkTarget refuses a target that exists, cannot be made or lies inside the source.
func (r *Export) checkTarget() error {
	err := CheckNew(r.Target.Path)
	if err == nil {
		err = CheckParent(r.Target.Path)
	}
	for _, dir := range []string{r.Source.Path, r.WALDir} {
		if err == nil && dir != "" {
			err = CheckApart(dir, filepath.Dir(r.Target.Path), r.Target.Path)
		}
	}
	return err
}

func (r *Export) report(id *Identity, began time.Time) *ExportReport {
	about := *id
	about.Plan = nil
	return &ExportReport{Parts: id.Parts, Tool: r.Tool, Source: r.Source, Target: r.Target, Now: id.Now,
		AllTasks: len(id.Plan.Tasks), Seconds: time.Since(began).Seconds(), Identity: &about}
}

func writeReport(w *Dir, rep *ExportReport) error {
	data, err := escape.Document(rep)
	if err == nil {
		err = w.WriteReport(data)
	}
	return err
}

func readReport(path string) (*ExportReport, error) {
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rep := new(ExportReport)
	if err := json.Unmarshal(data, rep); err != nil || rep.Identity == nil {
		return nil, fmt.Errorf("%s: not the report of an export: %v", path, err)
	}
	return rep, nil
}
