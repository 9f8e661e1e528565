package convert

import "kvferry/internal/pass/progress"

// Progress is the state of a running conversion.
type Progress = progress.State

// steps lists what a conversion does, with how long each step takes compared with the writing. The proof reads what was
// written, which is compressed already.
func (o *Options) steps() []progress.Step {
	out := o.first()
	if o.Rename {
		out = append(out, progress.Step{Name: "look", Weight: 0.5})
	}
	server := o.Target.Address != ""
	if server {
		out = append(out, progress.Step{Name: "count", Weight: 0.3})
	}
	out = append(out, progress.Step{Name: "run", Weight: 1}, progress.Step{Name: "finish", Weight: 0.05})
	if server && o.Target.Verify {
		out = append(out, progress.Step{Name: "fetch", Weight: 0.3})
	}
	if o.compares() {
		out = append(out, progress.Step{Name: "prove", Weight: 0.35})
	}
	return append(out, progress.Step{Name: "publish", Weight: 0.01})
}

// first lists what is done before the source is read: a server is copied, a log replayed.
func (o *Options) first() []progress.Step {
	plan := progress.Step{Name: "plan", Weight: 0.01}
	if name := o.preparation(); name != "" {
		return []progress.Step{{Name: name, Weight: 0.3}, plan}
	}
	return []progress.Step{plan}
}

// preparation is the step in which the source is made ready to be read; "" when it can be read as it is.
func (o *Options) preparation() string { return o.Source.Format.Limits().Place.Preparation() }

// drySteps lists what a dry run does.
func (o *Options) drySteps() []progress.Step {
	out := o.first()
	if !o.Estimate {
		if o.Rename {
			out = append(out, progress.Step{Name: "look", Weight: 0.5})
		}
		out = append(out, progress.Step{Name: "run", Weight: 1})
	}
	return append(out, progress.Step{Name: "sample", Weight: 0.05})
}
