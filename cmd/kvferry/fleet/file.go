// Package fleet plans the work on many datasets, for shells and schedulers, and reads from reports how far it is.
package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
	"kvferry/parquet"
)

// refused are the flags that a fleet sets, or that name a file.
var refused = []string{"part", "assemble", "prove", "proofs", "finish", "output", "html", "check", "against", "resume", "discard",
	"dry-run", "estimate", "failure-report"}

// Program is what a file is read for.
type Program struct {
	Commands map[string]func() *cobra.Command // that datasets can have, by name
	Target   func(location string) (convert.Output, error)
	// Mount returns the function that makes an address readable.
	Mount func(o object.Options, memory int64) func(string) (string, error)
}

// File is a file of datasets.
type File struct {
	path                string
	image, claim, mount string
	moves               []*move
}

// move is the work on one dataset.
type move struct {
	command              string
	name, source, target string // locations as in command lines
	path, at             string // of the target, as reports have it, and where to read it
	work                 string // begins the path of its work directory
	parts                int
	divided              bool     // the proof has parts, too
	options              []string // flags of the command, but format
	format               []string // the flag of a report's format
	memory               cli.SizeFlag
	workers              string
}

// The keys of a file, and those of a dataset. A key of a dataset overrides that of the file.
var (
	fileKeys = []string{"command", "target", "part", "options", "image", "claim", "mount", "datasets"}
	moveKeys = append(slices.Clone(fileKeys[:4]), "source", "name")
)

// Read reads a file of datasets, and finds those that match its patterns.
func (p *Program) Read(file string) (*File, error) {
	root, err := cli.ParseJob(file)
	if root == nil {
		return nil, cmp.Or(err, cli.Usagef("%s: it lists no datasets", file))
	}
	all, err := entries(root, fileKeys)
	if err != nil {
		return nil, cli.Usagef("%s: %w", file, err)
	}
	list := all["datasets"]
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, cli.Usagef("%s: datasets: want a list, each with a source", file)
	}
	t := &File{path: file, image: textOf(all["image"]), claim: textOf(all["claim"]), mount: textOf(all["mount"])}
	for _, n := range list.Content {
		own, err := entries(n, moveKeys)
		if err == nil {
			err = p.addMoves(t, own, all)
		}
		if err != nil {
			return nil, cli.Usagef("%s: line %d: %w", file, n.Line, err)
		}
	}
	return t, t.check()
}

// textOf returns the text of a value, "" without one.
func textOf(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// entries returns the entries of a map. Other keys than the known ones are errors.
func entries(n *yaml.Node, known []string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("want a map with the keys %s", strings.Join(known, ", "))
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch nested := key.Value == "options" || key.Value == "datasets"; {
		case !slices.Contains(known, key.Value):
			return nil, fmt.Errorf("line %d: unknown key %q%s", key.Line, key.Value, suggest.DidYouMean(key.Value, known))
		case out[key.Value] != nil:
			return nil, fmt.Errorf("line %d: %s is already set in line %d", key.Line, key.Value, out[key.Value].Line)
		case !nested && (value.Kind != yaml.ScalarNode || value.Value == ""):
			return nil, fmt.Errorf("line %d: %s: want a value", key.Line, key.Value)
		}
		out[key.Value] = value
	}
	return out, nil
}

// addMoves adds the work on the datasets that match a source.
func (p *Program) addMoves(t *File, own, all map[string]*yaml.Node) error {
	text := func(key string) string { return cmp.Or(textOf(own[key]), textOf(all[key])) }
	if text("source") == "" || text("target") == "" {
		return errors.New("a dataset needs a source, and a target here or at the top")
	}
	like, mount, err := p.options(cmp.Or(text("command"), "convert"), own["options"], all["options"])
	if err != nil {
		return err
	}
	loc, err := catalog.ParseLocation(text("source"))
	if err != nil {
		return err
	}
	found, err := datasets(loc.Path, mount)
	for _, d := range found {
		m := *like
		m.source = strings.TrimSuffix(text("source"), loc.Path) + d.address
		m.name = strings.ReplaceAll(cmp.Or(text("name"), "{name}"), "{name}", d.name)
		m.target = strings.ReplaceAll(text("target"), "{name}", m.name)
		if err = p.setTarget(&m, mount); err == nil {
			m.parts, err = m.partsOf(d.path, text("part"))
		}
		if err != nil {
			return err
		}
		t.moves = append(t.moves, &m)
	}
	return err
}

// setTarget sets the paths of the target, which convert writes as a dataset and other commands as a file or directory.
func (p *Program) setTarget(m *move, mount func(string) (string, error)) error {
	m.path, m.work = m.target, m.target
	if m.command == "convert" {
		to, err := p.Target(m.target)
		if err != nil {
			return err
		}
		m.path, m.work = to.Shown(), to.Path
		m.divided = to.Format.Limits().Place == format.InDirectory && !slices.Contains(m.options, "--no-prove=true")
	}
	m.at = filepath.Clean(m.path)
	switch {
	case m.uploads() && m.reports():
		return cli.Local("output", m.path)
	case m.uploads():
		at, err := mount(m.path)
		m.at = at
		return err
	case !filepath.IsAbs(m.path):
		return fmt.Errorf("target %s: %w", m.target, errRelative)
	}
	m.path = m.at
	return nil
}

func (m *move) uploads() bool { return object.IsAddress(m.path) }

// reports reports whether the parts write reports, which merge adds up.
func (m *move) reports() bool { return m.command != "convert" && m.command != "dump" }

// partsOf returns the number of parts of about a size that the dataset at a path has.
func (m *move) partsOf(path, part string) (int, error) {
	if part == "" || m.uploads() {
		return 1, nil
	}
	var size cli.SizeFlag
	if err := size.Set(part); err != nil || size == 0 {
		return 0, errors.New("part: want a number of bytes such as 64GiB")
	}
	var bytes int64
	err := disk.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return err
	})
	n := int(min(1+max(0, bytes-1)/int64(size), pass.MaxParts))
	if n > 1 && m.command != "convert" && !slices.ContainsFunc(m.options,
		func(word string) bool { return strings.HasPrefix(word, "--now=") }) {
		err = errors.Join(err, fmt.Errorf("parts of %s need a time in common: write options: {now: …}", m.command))
	}
	return n, err
}

// options returns the work on a dataset as far as its options go, and the function that makes an address readable
// with them. The options of the first map count, where several have one.
func (p *Program) options(command string, all ...*yaml.Node) (*move, func(string) (string, error), error) {
	construct := p.Commands[command]
	if construct == nil {
		return nil, nil, errors.New(suggest.Unknown("command", command, slices.Sorted(maps.Keys(p.Commands))))
	}
	cmd := construct()
	for _, n := range append(all, defaultsOf(command)) {
		if n != nil && n.Kind != yaml.MappingNode {
			return nil, nil, fmt.Errorf("options: line %d: want a map of flags of %s and their values", n.Line, command)
		}
		for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			err := cli.ApplyFlag(cmd, name, n.Content[i+1])
			if slices.Contains(refused, name) {
				err = fmt.Errorf("--%s is not an option of a fleet", name)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("options: line %d: %w", n.Content[i].Line, err)
			}
		}
	}
	text := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	m := &move{command: command, workers: text("workers")}
	if err := m.memory.Set(text("memory")); err != nil {
		return nil, nil, err
	}
	for _, word := range cli.FlagWords(cmd.Flags()) {
		if m.reports() && strings.HasPrefix(word, "--format=") {
			m.format = []string{word}
		} else {
			m.options = append(m.options, word)
		}
	}
	store := object.Options{Endpoint: text("s3-endpoint"), Region: text("s3-region"), PathStyle: text("s3-path-style") == "true",
		Anonymous: text("s3-anonymous") == "true"}
	return m, p.Mount(store, int64(m.memory)), nil
}

// defaultsOf are the default options of a command, with the memory and the workers of the examples.
func defaultsOf(command string) *yaml.Node {
	n := new(yaml.Node)
	values := map[string]string{"memory": "1536MiB", "workers": "2"}
	if command == "dump" {
		values["format"] = parquet.Name
	}
	if err := n.Encode(values); err != nil {
		panic(err) // texts
	}
	return n
}

// check refuses datasets that others of the file would disturb, and words that only some shells take.
func (t *File) check() error {
	names, paths := map[string]string{}, map[string]string{}
	for _, m := range t.moves {
		for _, word := range append([]string{m.source, m.target}, m.options...) {
			if !escape.IsPrintable(word) {
				return cli.Usagef("%s: %q has characters that are not printable, and not every sh takes them in a command: rename it, or link to it",
					t.path, word)
			}
		}
		if was, ok := paths[m.path]; ok {
			return cli.Usagef("%s: %s and %s have the same target, %s: write {name} in it", t.path, was, m.source, m.path)
		}
		if was, ok := names[JobName(m.name)]; ok {
			return cli.Usagef("%s: %s and %s have the same name, %s: give one of them another name", t.path, was, m.source,
				m.name)
		}
		paths[m.path], names[JobName(m.name)] = m.source, m.source
	}
	return nil
}

// found is a dataset that matches a source.
type found struct{ address, path, name string } // path: where to read it

// wild are the characters that make a path a pattern.
const wild = `*?[\`

var errRelative = errors.New("want an absolute path: commands run on machines that have other working directories")

// datasets lists the datasets that match the path or address of a source.
func datasets(pattern string, mount func(string) (string, error)) ([]found, error) {
	fixed, path := pattern, pattern
	switch {
	case object.IsAddress(pattern):
		if i := strings.IndexAny(pattern, wild); i >= 0 && strings.HasPrefix(pattern, "s3://") {
			fixed = pattern[:strings.LastIndexByte(pattern[:i], '/')]
		}
		var err error
		if path, err = mount(fixed); err != nil {
			return nil, err
		}
	case !filepath.IsAbs(pattern):
		return nil, fmt.Errorf("%s: %w", pattern, errRelative)
	default:
		fixed, path = "", ""
	}
	out := []found{{fixed, path, ""}}
	rest := strings.Split(strings.TrimPrefix(strings.TrimPrefix(pattern, fixed), "/"), "/")
	for _, elem := range rest {
		var next []found
		for _, dir := range out {
			more, err := dir.below(elem)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", object.Shown(pattern), err)
			}
			next = append(next, more...)
		}
		out = next
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no dataset found", object.Shown(pattern))
	}
	for i := range out {
		out[i].name = cmp.Or(out[i].name, filepath.Base(out[i].path))
	}
	return out, nil
}

// below lists the entries of a directory that match an element of a pattern.
func (f *found) below(elem string) ([]found, error) {
	if !strings.ContainsAny(elem, wild) {
		next := *f
		if elem != "" {
			next.address, next.path = f.address+"/"+elem, disk.Join(f.path+"/", elem)
		}
		_, err := disk.Stat(next.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // a file that matches, too
			return nil, nil
		}
		return []found{next}, err
	}
	if st, err := disk.Stat(f.path + "/"); err != nil || !st.IsDir() {
		return nil, nil
	}
	paths, err := disk.Glob(f.path+"/", elem)
	var out []found
	for _, p := range paths {
		name := filepath.Base(p)
		if convert.IsReport(p) || isFailure(p) || convert.IsWork(p) { // of a target
			continue
		}
		out = append(out, found{f.address + "/" + name, p, strings.TrimPrefix(f.name+"-"+name, "-")})
	}
	return out, err
}
