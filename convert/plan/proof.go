package plan

import "kvferry/format"

// sectionTasks lists the sections of a database of a target without key order. If the database cannot be split, it is
// one section.
func sectionTasks(back format.Source, s format.Sectioned, db, planned string) (out []*Task) {
	types := back.Types(db)
	size := back.Size(db, types)
	spans, err := s.Sections(db, types, int(min(size/pieceBytes+1, maxSpans)))
	if err != nil {
		spans = []format.Span{{}}
	}
	for i, span := range spans {
		out = append(out, &Task{N: i, DB: db, TargetDB: planned, Types: types, Span: span, Bytes: size / int64(len(spans))})
	}
	return out
}

// ProofTasks lists the tasks that read the whole target, split into the spans it was written in. Their TargetDB is
// the name in the plan: a target with one database may use another name.
func ProofTasks(back format.Source, p *Plan) []*Task {
	var out []*Task
	dbs := back.Databases()
	for _, db := range dbs {
		planned := db
		if len(dbs) == 1 && len(p.TargetDBs) == 1 {
			planned = p.TargetDBs[0]
		}
		rest := back.Types(db)
		if s, ok := format.As[format.Sectioned](back); ok {
			out = append(out, sectionTasks(back, s, db, planned)...)
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
				out = append(out, &Task{N: t.N, DB: db, TargetDB: planned, Types: g, Span: t.Span, Bytes: bytes})
				rest &^= g
			}
		}
		if rest != 0 {
			out = append(out, &Task{DB: db, TargetDB: planned, Types: rest, Bytes: back.Size(db, rest)})
		}
	}
	return out
}
