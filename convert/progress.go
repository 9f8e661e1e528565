package convert

import "kvferry/internal/progress"

// Progress says how far a conversion is.
type Progress = progress.State

// steps lists what a conversion does, with how long each step takes compared with the writing. The proof reads what was
// written, which is compressed already.
func (o *Options) steps() []progress.Step {
	out := []progress.Step{{Name: "plan", Weight: 0.01}}
	if o.Rename {
		out = append(out, progress.Step{Name: "look", Weight: 0.5})
	}
	out = append(out, progress.Step{Name: "run", Weight: 1}, progress.Step{Name: "finish", Weight: 0.05})
	if !o.NoProve {
		out = append(out, progress.Step{Name: "prove", Weight: 0.35})
	}
	return append(out, progress.Step{Name: "publish", Weight: 0.01})
}

// drySteps lists what a dry run does.
func (o *Options) drySteps() []progress.Step {
	out := []progress.Step{{Name: "plan", Weight: 0.01}}
	if !o.Estimate {
		if o.Rename {
			out = append(out, progress.Step{Name: "look", Weight: 0.5})
		}
		out = append(out, progress.Step{Name: "run", Weight: 1})
	}
	return append(out, progress.Step{Name: "sample", Weight: 0.05})
}
