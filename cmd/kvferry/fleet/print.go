package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"gopkg.in/yaml.v3"

	"kvferry/cmd/kvferry/cli"
	"kvferry/examples"
	"kvferry/internal/text/escape"
)

// stage is a step of the work on a dataset: one command or, if n is not 0, one for each of n parts.
type stage struct {
	name  string // ends the name of a job
	flags []string
	n     int
}

// stages lists the steps in their order.
func (m *move) stages() []stage {
	if m.parts == 1 {
		return []stage{{}}
	}
	out := []stage{{"parts", []string{"--part"}, m.parts}, {"finish", []string{"--finish"}, 0}}
	switch {
	case m.reports():
		out[1].name = merging
	case m.divided:
		out[1].flags = append(out[1].flags, fmt.Sprintf("--proofs=%d", m.parts))
		out = slices.Insert(out, 1, stage{"assemble", []string{"--assemble"}, 0}, stage{"proofs", []string{"--prove"}, m.parts})
	}
	return out
}

// merging is the last step of commands whose parts write reports.
const merging = "merge"

// words returns a command line of a step; k is the number of the part.
func (m *move) words(s stage, k string) []string {
	if s.name == merging {
		words := append(append([]string{merging}, m.format...), "--output="+m.target)
		for k := range m.parts {
			words = append(words, m.report(fmt.Sprint(k+1)))
		}
		return words
	}
	words := []string{m.command}
	if m.command == "convert" {
		words = append(words, "--failure-report")
	}
	words = append(words, s.flags...)
	if s.n > 0 {
		words[len(words)-1] += fmt.Sprintf("=%s/%d", k, s.n)
	}
	words = append(words, m.options...)
	switch {
	case m.command == "convert":
		return append(words, m.source, m.target)
	case m.reports() && s.n > 0:
		return append(words, "--output="+m.report(k), m.source)
	}
	return append(append(words, m.format...), "--output="+m.target, m.source)
}

// report is the path of the report of a part.
func (m *move) report(k string) string { return fmt.Sprintf("%s-%s-of-%d", m.target, k, m.parts) }

// lines returns the command lines of a step, but those of parts that skip has.
func (m *move) lines(s stage, skip func(k int) bool) (out []string) {
	if s.n == 0 {
		return []string{cli.CommandLine(m.words(s, ""))}
	}
	for k := 1; k <= s.n; k++ {
		if skip == nil || !skip(k) {
			out = append(out, cli.CommandLine(m.words(s, fmt.Sprint(k))))
		}
	}
	return out
}

// script returns the shell script of a job. In it, program runs kvferry and part is the number of the part. A part that
// met errors in its dataset is done.
func (m *move) script(s stage, program, part string) string {
	const mark = "\x00"
	words := []string{program}
	for _, word := range cli.ShownWords(m.words(s, mark)) {
		var text []string
		for _, piece := range strings.Split(word, mark) {
			text = append(text, escape.Shell([]string{piece}))
		}
		words = append(words, strings.Join(text, part))
	}
	line := strings.Join(words, " ")
	if s.n > 0 && m.command != "convert" {
		return fmt.Sprintf("%s || [ $? = %d ]", line, cli.ExitFindings)
	}
	return "exec " + line
}

// job returns the name of the job of a step.
func (m *move) job(s stage) string { return strings.Trim("kvferry-"+JobName(m.name)+"-"+s.name, "-") }

// Print returns the work as the input of a shell or a scheduler.
func (t *File) Print(as string) (string, error) {
	var b strings.Builder
	if as == "slurm" {
		b.WriteString("#!/bin/sh\n# Submits the work on datasets to Slurm.\nset -eu\n")
	}
	for _, m := range t.moves {
		var text string
		var err error
		switch as {
		case "slurm":
			text = m.slurm()
		case "kubernetes":
			text, err = t.kubernetes(m)
		case "argo":
			text, err = t.argo(m)
		default:
			for _, s := range m.stages() {
				text += strings.Join(m.lines(s, nil), "\n") + "\n"
			}
		}
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// slurm returns the commands that submit the work on a dataset. Each job depends on the previous one.
func (m *move) slurm() string {
	var b strings.Builder
	for i, s := range m.stages() {
		flags := ""
		if s.n > 0 {
			flags = fmt.Sprintf(" --array=1-%d", s.n)
		}
		if i > 0 {
			flags += ` --dependency="afterok:${job%%;*}"`
		}
		fmt.Fprintf(&b, "job=$(sbatch --parsable --export=ALL --requeue --job-name=%s --cpus-per-task=%s --mem=%dM%s --wrap=%s)\n",
			m.job(s), m.workers,
			m.podMemory()>>20, flags, escape.Shell([]string{m.script(s, `"${KVFERRY:-kvferry}"`, `"$SLURM_ARRAY_TASK_ID"`)}))
	}
	return b.String()
}

// filled returns a manifest in examples/ that fill has filled in.
func filled(file string, fill func(root *yaml.Node)) (string, error) {
	data, err := fs.ReadFile(examples.Files, file)
	if err != nil {
		return "", err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	root := doc.Content[0]
	root.HeadComment, doc.HeadComment = "", ""
	fill(root)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err = e.Encode(root)
	return "---\n" + out.String(), err
}

// kubernetes returns a Job for each step. All may be created together: a step that comes too early ends with 5 and is
// tried again.
func (t *File) kubernetes(m *move) (string, error) {
	var b strings.Builder
	for _, s := range m.stages() {
		file, args := "kubernetes/finish.yaml", m.words(s, "")
		if s.n > 0 {
			file, args = "kubernetes/convert.yaml", []string{m.script(s, "kvferry", `"$((JOB_COMPLETION_INDEX + 1))"`)}
		}
		text, err := filled(file, func(root *yaml.Node) {
			set(root, m.job(s), "metadata", "name")
			if s.n > 0 {
				set(root, s.n, "spec", "completions")
				set(root, min(s.n, 8), "spec", "parallelism")
			}
			pod := cli.At(root, "spec", "template", "spec")
			t.container(cli.At(pod, "containers", "0"), m, args)
			t.volume(cli.At(pod, "volumes", "0"))
		})
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// argo returns a workflow, which is submitted when it is created.
func (t *File) argo(m *move) (string, error) {
	return filled("argo/convert.yaml", func(root *yaml.Node) {
		set(root, "Workflow", "kind")
		set(root, m.job(stage{}), "metadata", "name")
		var steps [][]map[string]any
		for _, s := range m.stages() {
			line := m.script(s, "kvferry", "{{item}}")
			step := map[string]any{"name": cmp.Or(s.name, m.command), "template": "kvferry",
				"arguments": map[string]any{"parameters": []map[string]string{{"name": "line", "value": line}}}}
			if s.n > 0 {
				step["withSequence"] = map[string]string{"start": "1", "end": fmt.Sprint(s.n)}
			}
			steps = append(steps, []map[string]any{step})
		}
		set(root, steps, "spec", "templates", "0", "steps")
		set(root, map[string]any{}, "spec", "arguments")
		pod := cli.At(root, "spec", "templates", "1")
		set(pod, "line", "inputs", "parameters", "0", "name")
		set(pod, []string{"/bin/sh", "-c"}, "container", "command")
		t.container(cli.At(pod, "container"), m, []string{"{{inputs.parameters.line}}"})
		t.volume(cli.At(root, "spec", "volumes", "0"))
	})
}

func (t *File) volume(n *yaml.Node) {
	if t.claim != "" {
		set(n, t.claim, "persistentVolumeClaim", "claimName")
	}
}

// podMemory is a third more than --memory, in whole MiB.
func (m *move) podMemory() cli.SizeFlag { return (m.memory/3*4 + 1<<20 - 1) >> 20 << 20 }

// container fills in a container.
func (t *File) container(n *yaml.Node, m *move, args []string) {
	memory := m.podMemory()
	limit := strings.TrimSuffix(memory.String(), "B")
	set(n, limit, "resources", "requests", "memory")
	set(n, limit, "resources", "limits", "memory")
	set(n, m.workers, "resources", "requests", "cpu")
	set(n, args, "args")
	if t.image != "" {
		set(n, t.image, "image")
	}
	if t.mount != "" {
		set(n, t.mount, "workingDir")
		set(n, t.mount, "volumeMounts", "0", "mountPath")
	}
}

// set replaces a node below n. Texts stay texts: YAML would read "2" as a number.
func set(n *yaml.Node, value any, path ...string) {
	to := cli.At(n, path...)
	var is yaml.Node
	if err := is.Encode(value); err != nil {
		panic(err) // no value of YAML
	}
	is.LineComment = to.LineComment
	*to = is
}

// noName matches what the name of a job may not have.
var noName = regexp.MustCompile(`[^a-z0-9]+`)

// JobName makes a name of a dataset one of a job: lower-case letters, digits and -, at most 40. Those of different
// datasets differ.
func JobName(name string) string {
	out := strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if out == name && len(out) <= 40 {
		return out
	}
	return fmt.Sprintf("%s-%08x", out[:min(len(out), 31)], uint32(xxhash.Sum64String(name)))
}
