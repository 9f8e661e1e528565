// Command manifests checks manifests against the types that Kubernetes publishes. It is a module of its own, so that
// kvferry does not depend on them.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	checked := 0
	for _, file := range os.Args[1:] {
		n, err := check(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
		checked += n
	}
	if checked == 0 {
		fmt.Fprintln(os.Stderr, "no manifest was checked")
		os.Exit(1)
	}
	fmt.Printf("%d manifests match their types\n", checked)
}

// check checks the documents of a file and returns their number.
func check(file string) (n int, _ error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := checkOne(doc); err != nil {
			return n, fmt.Errorf("document %d: %w", n+1, err)
		}
		n++
	}
}

// checkOne decodes a document as the type that it names. Unknown and repeated fields are errors.
func checkOne(doc []byte) error {
	var kind struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "batch/v1 Job":
		var job batch.Job
		if err := yaml.UnmarshalStrict(doc, &job); err != nil {
			return err
		}
		return checkJob(&job.Spec)
	case "argoproj.io/v1alpha1 Workflow", "argoproj.io/v1alpha1 WorkflowTemplate":
		return yaml.UnmarshalStrict(doc, new(workflow))
	}
	return fmt.Errorf("%s %s: not a kind that is checked", kind.APIVersion, kind.Kind)
}

// workflow has the fields of Argo's Workflow that the manifests use. Their containers and volumes are Kubernetes' own:
// the types of Argo come with hundreds of modules.
type workflow struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Entrypoint  string        `json:"entrypoint"`
		Parallelism int64         `json:"parallelism"`
		Arguments   arguments     `json:"arguments"`
		Volumes     []core.Volume `json:"volumes"`
		Templates   []struct {
			Name   string    `json:"name"`
			Inputs arguments `json:"inputs"`
			Steps  [][]struct {
				Name         string            `json:"name"`
				Template     string            `json:"template"`
				Arguments    arguments         `json:"arguments"`
				WithSequence map[string]string `json:"withSequence"`
			} `json:"steps"`
			RetryStrategy struct {
				Limit       string `json:"limit"`
				RetryPolicy string `json:"retryPolicy"`
				Expression  string `json:"expression"`
			} `json:"retryStrategy"`
			Container *core.Container `json:"container"`
		} `json:"templates"`
	} `json:"spec"`
}

type arguments struct {
	Parameters []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"parameters"`
}

// checkJob checks what the API server demands of Jobs with these fields.
func checkJob(s *batch.JobSpec) error {
	indexed := s.CompletionMode != nil && *s.CompletionMode == batch.IndexedCompletion
	switch {
	case s.PodFailurePolicy == nil || s.Template.Spec.RestartPolicy != "Never":
		return errors.New("want a podFailurePolicy, which needs restartPolicy: Never")
	case s.BackoffLimitPerIndex != nil && !indexed, s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil:
		return errors.New("limits of indexes need completionMode: Indexed, and maxFailedIndexes a backoffLimitPerIndex")
	}
	var codes []int32
	for _, r := range s.PodFailurePolicy.Rules {
		switch r.Action {
		case batch.PodFailurePolicyActionIgnore, batch.PodFailurePolicyActionFailJob:
		default:
			return fmt.Errorf("podFailurePolicy: action %q", r.Action)
		}
		if (r.OnExitCodes == nil) == (r.OnPodConditions == nil) {
			return errors.New("podFailurePolicy: a rule is about exit codes or about conditions")
		}
		if r.OnExitCodes == nil {
			continue
		}
		c := r.OnExitCodes
		if c.Operator != batch.PodFailurePolicyOnExitCodesOpIn || c.ContainerName == nil ||
			*c.ContainerName != s.Template.Spec.Containers[0].Name {
			return fmt.Errorf("podFailurePolicy: %+v", *c)
		}
		codes = append(codes, r.OnExitCodes.Values...)
	}
	if len(codes) < 2 {
		return fmt.Errorf("podFailurePolicy goes by the exit codes %d only", codes)
	}
	return nil
}
