package plan

import (
	"kvferry/format"
	"kvferry/internal/pass"
)

// sectionTasks lists the sections of a database of a target without key order. If the database cannot be split, it is
// one section.
func sectionTasks(back format.Source, db, planned string) []pass.Task {
	whole := pass.Task{DB: db, TargetDB: planned, Types: back.Types(db)}
	whole.Bytes = back.Size(db, whole.Types)
	tasks, err := whole.Cut(back, min(whole.Bytes/pieceBytes+1, maxSpans), true)
	if err != nil {
		return []pass.Task{whole}
	}
	return tasks
}

// ProofTasks lists the tasks that read the whole target, split into the spans it was written in. Their TargetDB is
// the name in the plan: a target with one database may use another name.
func ProofTasks(back format.Source, p *Plan) []pass.Task {
	var out []pass.Task
	dbs := back.Databases()
	for _, db := range dbs {
		planned := db
		if len(dbs) == 1 && len(p.TargetDBs) == 1 {
			planned = p.TargetDBs[0]
		}
		rest := back.Types(db)
		if _, ok := format.As[format.Sectioned](back); ok {
			out = append(out, sectionTasks(back, db, planned)...)
			continue
		}
		for i := range p.Tasks {
			t := &p.Tasks[i]
			// Sections are offsets in the source's file and have no meaning in the target.
			if t.TargetDB != planned || t.Group == 0 || t.Span.IsSection() {
				continue
			}
			for _, g := range p.Groups {
				if g &= t.Group; g == 0 {
					continue
				}
				bytes := back.Size(db, g) / int64(max(p.spans(t), 1))
				out = append(out, pass.Task{N: t.N, DB: db, TargetDB: planned, Types: g, Span: t.Span, Bytes: bytes})
				rest &^= g
			}
		}
		if rest != 0 {
			out = append(out, pass.Task{DB: db, TargetDB: planned, Types: rest, Bytes: back.Size(db, rest)})
		}
	}
	return out
}
