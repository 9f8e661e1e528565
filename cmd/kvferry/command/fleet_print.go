package command

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cespare/xxhash/v2"
	"gopkg.in/yaml.v3"

	"kvferry/examples"
	"kvferry/internal/text/escape"
)

// words returns the command line of the conversion with a flag; "" is none.
func (m *move) words(flag string) []string {
	words := []string{"convert", "--failure-report"}
	if flag != "" {
		words = append(words, flag)
	}
	return append(append(words, m.options...), m.source, m.target)
}

// steps lists the command lines of the conversion: its parts and the finish, or one run.
func (m *move) steps() (out [][]string) {
	if m.parts == 1 {
		return [][]string{m.words("")}
	}
	for k := range m.parts {
		out = append(out, m.words(fmt.Sprintf("--part=%d/%d", k+1, m.parts)))
	}
	return append(out, m.words("--finish"))
}

// print returns the conversions as the input of a shell or a scheduler.
func (t *fleetFile) print(as string) (string, error) {
	var b strings.Builder
	switch as {
	case "slurm":
		return t.slurm()
	case "kubernetes", "argo":
		for _, m := range t.moves {
			text, err := t.manifests(m, as)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		}
	default:
		for _, m := range t.moves {
			for _, words := range m.steps() {
				b.WriteString("kvferry " + escape.Shell(words) + "\n")
			}
		}
	}
	return b.String(), nil
}

// slurm returns a script that submits the jobs of all conversions with the scripts in examples/slurm.
func (t *fleetFile) slurm() (string, error) {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Submits conversions to Slurm.\nset -eu\ndir=$(mktemp -d)\ntrap 'rm -rf \"$dir\"' EXIT\n")
	for _, name := range []string{"convert.sh", "part.sh", "finish.sh"} {
		data, err := fs.ReadFile(examples.Files, "slurm/"+name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "cat >\"$dir/%s\" <<'END OF SCRIPT'\n%sEND OF SCRIPT\n", name, data)
	}
	b.WriteString("chmod +x \"$dir\"/*.sh\n")
	for _, m := range t.moves {
		fmt.Fprintf(&b, "PARTS=%d \"$dir/convert.sh\" %s\n", m.parts, escape.Shell(m.words("")[1:]))
	}
	return b.String(), nil
}

// manifests returns the conversion as the manifests in examples/, with its own names, numbers and command lines.
func (t *fleetFile) manifests(m *move, as string) (string, error) {
	files := map[string][]string{"kubernetes": {"kubernetes/convert.yaml", "kubernetes/finish.yaml"}, "argo": {"argo/convert.yaml"}}[as]
	if as == "kubernetes" && m.parts == 1 {
		files = files[1:]
	}
	var b strings.Builder
	for _, file := range files {
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
		switch file {
		case "argo/convert.yaml":
			t.argo(root, m)
		case "kubernetes/convert.yaml":
			set(root, "kvferry-"+jobName(m.name)+"-parts", "metadata", "name")
			set(root, m.parts, "spec", "completions")
			set(root, min(m.parts, 8), "spec", "parallelism")
			command := fmt.Sprintf("exec kvferry convert --part \"$((JOB_COMPLETION_INDEX + 1))/%d\" %s", m.parts, escape.Shell(m.words("")[1:]))
			t.pod(at(root, "spec", "template", "spec"), m, []string{command})
		default:
			words := m.words("--finish")
			set(root, "kvferry-"+jobName(m.name)+"-finish", "metadata", "name")
			if m.parts == 1 {
				words = m.words("")
				set(root, "kvferry-"+jobName(m.name), "metadata", "name")
			}
			t.pod(at(root, "spec", "template", "spec"), m, words)
		}
		var out bytes.Buffer
		e := yaml.NewEncoder(&out)
		e.SetIndent(2)
		if err := e.Encode(root); err != nil {
			return "", err
		}
		b.WriteString("---\n" + out.String())
	}
	return b.String(), nil
}

// argo fills in a workflow: one for each conversion, submitted when it is created.
func (t *fleetFile) argo(root *yaml.Node, m *move) {
	set(root, "Workflow", "kind")
	set(root, "kvferry-"+jobName(m.name), "metadata", "name")
	for i, value := range []string{fmt.Sprint(m.parts), m.source, m.target} {
		set(root, value, "spec", "arguments", "parameters", fmt.Sprint(i), "value")
	}
	words := m.words("{{inputs.parameters.what}}")
	words[len(words)-2], words[len(words)-1] = "{{workflow.parameters.source}}", "{{workflow.parameters.target}}"
	pod := at(root, "spec", "templates", "1")
	at(pod, "container").Style = 0
	t.container(at(pod, "container"), m, words)
	t.volume(at(root, "spec", "volumes", "0"))
}

// pod fills in the container and the volume of a pod.
func (t *fleetFile) pod(pod *yaml.Node, m *move, args []string) {
	t.container(at(pod, "containers", "0"), m, args)
	t.volume(at(pod, "volumes", "0"))
}

func (t *fleetFile) volume(n *yaml.Node) {
	if t.claim != "" {
		set(n, t.claim, "persistentVolumeClaim", "claimName")
	}
}

// container fills in a container. It gets a third more memory than kvferry.
func (t *fleetFile) container(n *yaml.Node, m *move, args []string) {
	memory := (m.memory/3*4 + 1<<20 - 1) >> 20 << 20
	limit := strings.TrimSuffix(memory.String(), "B")
	set(n, limit, "resources", "requests", "memory")
	set(n, limit, "resources", "limits", "memory")
	set(n, fmt.Sprint(m.workers), "resources", "requests", "cpu")
	set(n, args, "args")
	if t.image != "" {
		set(n, t.image, "image")
	}
	if t.mount != "" {
		set(n, t.mount, "volumeMounts", "0", "mountPath")
	}
}

// at returns a node below n: entries of maps by key, items of lists by number.
func at(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		var next *yaml.Node
		for i, c := range n.Content {
			if n.Kind == yaml.SequenceNode && fmt.Sprint(i) == key || n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == key {
				next = c
			}
		}
		n = next
	}
	return n
}

// set replaces a node below n. Texts stay texts: YAML would read "2" as a number.
func set(n *yaml.Node, value any, path ...string) {
	to := at(n, path...)
	var is yaml.Node
	if err := is.Encode(value); err != nil {
		panic(err) // not a text, number or list of texts
	}
	is.LineComment = to.LineComment
	*to = is
}

// noName matches what the name of a job may not have.
var noName = regexp.MustCompile(`[^a-z0-9]+`)

// jobName makes a name of a dataset one of a job: lower-case letters, digits and -, at most 40. Those of different
// datasets differ.
func jobName(name string) string {
	out := strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if out == name && len(out) <= 40 {
		return out
	}
	return fmt.Sprintf("%s-%08x", out[:min(len(out), 31)], uint32(xxhash.Sum64String(name)))
}
