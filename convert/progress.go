package convert

import (
	"kvferry/format"
	"kvferry/internal/pass/progress"
)

// Progress is the state of a running conversion.
type Progress = progress.State

// steps lists the steps of a conversion, weighted by duration relative to the writing. The proof reads written data,
// which is compressed already.
func (o *Options) steps() []progress.Step {
	out := o.first()
	if o.Rename {
		out = append(out, progress.Step{Name: "look", Weight: 0.5})
	}
	server := o.Target.Address != ""
	if server {
		out = append(out, progress.Step{Name: "count", Weight: 0.3})
	}
	finish := 0.05
	if o.Target.Format.Limits().Place == format.InFile {
		finish = 0.4
	}
	out = append(out, progress.Step{Name: "convert", Weight: 1}, progress.Step{Name: "finish", Weight: finish})
	if server && o.Target.Verify {
		out = append(out, progress.Step{Name: "fetch", Weight: 0.3})
	}
	if o.compares() {
		out = append(out, progress.Step{Name: "prove", Weight: 0.35})
	}
	return append(out, progress.Step{Name: "publish", Weight: 0.01})
}

// first lists the steps before the first record is read: copying a server, replaying a log, scanning a file, planning.
func (o *Options) first() []progress.Step {
	plan := progress.Step{Name: "plan", Weight: 0.01}
	if name := o.preparation(); name != "" {
		return []progress.Step{{Name: name, Weight: 0.3}, plan}
	}
	return []progress.Step{plan}
}

// preparation names the step that makes the source readable; "" if it needs none.
func (o *Options) preparation() string { return o.Source.Format.Limits().Place.Preparation() }

// drySteps lists the steps of a dry run.
func (o *Options) drySteps() []progress.Step {
	out := o.first()
	if !o.Estimate {
		if o.Rename {
			out = append(out, progress.Step{Name: "look", Weight: 0.5})
		}
		out = append(out, progress.Step{Name: "read", Weight: 1})
	}
	return append(out, progress.Step{Name: "sample", Weight: 0.05})
}
