package manifest

import (
	"context"
	"fmt"

	"kvferry/record"
)

// Newest replaces a lost CURRENT: it reads the MANIFEST with the highest number that ends with a whole record, or
// returns nil. Of the others it reports nothing.
func Newest(ctx context.Context, dir string, names []string, report func(record.Finding)) (best *Version) {
	var found []record.Finding
	for _, name := range names {
		n, ok := manifestNumber(name)
		if !ok || best != nil && best.Number > n {
			continue
		}
		var of []record.Finding
		v, err := readNamed(ctx, dir, name, func(f record.Finding) { of = append(of, f) })
		if err == nil && !v.Torn {
			best, found = v, of
		}
	}
	for _, f := range found {
		report(f)
	}
	return best
}

// Rebuilt starts a version that is built from the files of a directory instead of a MANIFEST. of is the version before
// the damage of the MANIFEST, or nil: it has column families and obsolete files.
func Rebuilt(of *Version, path, name string, levelDB bool) *Version {
	v := newVersion()
	v.Path, v.Name, v.Rebuilt, v.before = path, name, true, of
	if of != nil {
		v.MaxFamily = of.MaxFamily
		for id, f := range of.Families {
			v.Families[id] = newFamily(id, f.Name)
			v.Families[id].Comparator = f.Comparator
		}
	}
	v.Rocks, v.OldFile = !levelDB, levelDB
	return v
}

// Engine returns the engine that wrote the readable edits.
func (v *Version) Engine() (levelDB, known bool) { return !v.Rocks, v.Rocks || v.OldFile }

// FamilyOf returns the column family of a rebuilt version that a table or OPTIONS names, or nil if it was dropped.
func (v *Version) FamilyOf(id uint32, name, comparator string) *Family {
	f := v.Families[id]
	if f == nil {
		if v.Dropped(id) {
			return nil
		}
		if name == "" {
			name = fmt.Sprintf("unnamed-%d", id)
		}
		f = newFamily(id, name)
		v.Families[id] = f
		v.MaxFamily = max(v.MaxFamily, id)
	}
	if f.Comparator == "" {
		f.Comparator = comparator
	}
	return f
}

// Dropped reports whether a column family is known to be dropped. A MANIFEST forgets dropped families when it is written
// anew, but then no log has writes of them: the engine flushes all logs before.
func (v *Version) Dropped(id uint32) bool {
	if !v.Rebuilt {
		return v.dropped[id]
	}
	return v.before != nil && id <= v.before.MaxFamily && v.before.Families[id] == nil
}

// Was describes a file by the edits before the damage of the MANIFEST.
type Was struct {
	Table
	Family uint32
	Listed bool // the last readable version lists it
	Past   bool // an edit deleted it: it is obsolete
}

// Was returns the description of the table or blob file with a number.
func (v *Version) Was(number uint64) Was {
	if v.before == nil {
		return Was{}
	}
	if v.was == nil {
		v.was = map[uint64]Was{}
		for id, f := range v.before.Families {
			for at, t := range f.Tables {
				v.was[at.Number] = Was{Table: t, Family: id, Listed: true}
			}
			for n := range f.blobs {
				v.was[n] = Was{Family: id, Listed: true}
			}
		}
	}
	w, ok := v.was[number]
	w.Past = !ok && v.before.Mentioned[number]
	return w
}

// Complete sets the default comparator, once all column families of a rebuilt version are known.
func (v *Version) Complete() { v.Families[0].setDefault() }

// AddTable adds a table to a rebuilt version. All its tables are of level 0: their sequence numbers order the rows.
func (v *Version) AddTable(f *Family, t Table) {
	t.Level = 0
	f.Tables[t.Position] = t
	v.Mentioned[t.Number] = true
	v.NextFile = max(v.NextFile, t.Number+1)
}

// AddBlob adds a blob file to a rebuilt version.
func (v *Version) AddBlob(f *Family, number uint64) {
	f.blobs[number] = &Blob{Number: number}
	f.allBlobs = true
	v.Mentioned[number] = true
	v.NextFile = max(v.NextFile, number+1)
}
