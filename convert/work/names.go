package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Names is a file that one of several processes makes: the plan, the names in one part of it, the proof of one part of
// the target, or its scan. Every part of the conversion needs the names of all parts: each is read once, by whichever
// process comes first, and no process waits for another.
type Names struct {
	Path string
	dir  string
	name string
}

// Names returns the file of a part, which need not exist.
func (p *Parts) Names(part pass.Part, id *Identity) *Names {
	return p.once(fmt.Sprintf("names-%x-%s", id.Began.UnixNano(), part.Name()))
}

func (p *Parts) once(name string) *Names {
	dir := filepath.Join(p.Path, partsDir)
	return &Names{filepath.Join(dir, name), dir, name}
}

// Proof returns the file of the proof of a part of an assembled target, which need not exist. That of a target which is
// assembled again has another name.
func (p *Parts) Proof(part pass.Part, made *Census) *Names {
	return p.once(proofPrefix(made) + part.Name())
}

func proofPrefix(made *Census) string {
	return "proof-" + hashOf(made) + "-"
}

// Scan returns the file for the result of scanning an assembled target. It need not exist.
func (p *Parts) Scan(made *Census) *Names { return p.once("scan-" + hashOf(made)) }

func hashOf(made *Census) string {
	data, _ := json.Marshal(made) // it came from JSON
	return record.HashBytes(data).String()[:16]
}

// Proofs lists the parts of a target with a proof. If processes have divided it differently, the largest share counts.
func (p *Parts) Proofs(made *Census) (out []pass.Part, err error) {
	entries, err := disk.ReadDir(filepath.Join(p.Path, partsDir))
	by := make(map[int][]pass.Part)
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), proofPrefix(made))
		part, bad := pass.ParsePart(strings.Replace(name, "-of-", "/", 1))
		if !ok || bad != nil {
			continue
		}
		by[part.N] = append(by[part.N], part)
	}
	for _, n := range slices.Sorted(maps.Keys(by)) {
		if len(out) == 0 || len(by[n])*out[0].N > len(out)*n {
			out = by[n]
		}
	}
	return out, err
}

// Done reports whether the file exists.
func (n *Names) Done() bool {
	_, err := disk.Lstat(n.Path)
	return err == nil
}

// Make makes the file unless another process is first. fill writes it, and returns any error once it exists.
func (n *Names) Make(fill func(path string) error) error {
	f, err := disk.CreateTemp(n.dir, n.name+".*"+halfSuffix)
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil {
		err = fill(f.Name())
	}
	if err != nil {
		err = errors.Join(err, disk.RemoveAll(f.Name()))
	} else {
		err = appear(f.Name(), n.Path)
	}
	if n.Done() {
		return disk.SyncPath(n.dir)
	}
	return err
}

// Unnamed returns the part whose names to read next: the process's own part first, and then one that no process seems
// to read. After that any missing one: its process may be slow, or dead. It returns false if none is missing.
func (p *Parts) Unnamed(own pass.Part, id *Identity) (pass.Part, bool, error) {
	entries, err := disk.ReadDir(filepath.Join(p.Path, partsDir))
	var missing, free []pass.Part
	for k := range own.N {
		part := pass.Part{K: (own.K+k-1)%own.N + 1, N: own.N}
		n := p.Names(part, id)
		if n.Done() {
			continue
		}
		if k == 0 {
			return part, true, err
		}
		missing = append(missing, part)
		begun := false
		for _, e := range entries {
			begun = begun || strings.HasPrefix(e.Name(), n.name+".")
		}
		if !begun {
			free = append(free, part)
		}
	}
	if len(free) > 0 {
		missing = free
	}
	if len(missing) == 0 {
		return pass.Part{}, false, err
	}
	return missing[rand.IntN(len(missing))], true, err
}
