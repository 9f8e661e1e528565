package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/internal/text/suggest"
)

const completionHelp = `Write a script that completes command lines in a shell: commands, flags, their values, locations of
datasets.

  bash        needs the package bash-completion, then a new shell
  zsh         a new shell; compinit must be on: echo "autoload -U compinit; compinit" >> ~/.zshrc
  fish        a new shell
  powershell  this session; the line in the profile for every session`

const completionExample = `  kvferry completion bash > /etc/bash_completion.d/kvferry
  kvferry completion zsh > "${fpath[1]}/_kvferry"
  kvferry completion fish > ~/.config/fish/completions/kvferry.fish
  kvferry completion powershell | Out-String | Invoke-Expression
  source <(kvferry completion bash)`

// shell is a shell for which kvferry writes a completion script.
type shell struct {
	name  string
	write func(root *cobra.Command, w io.Writer) error
}

var shells = []shell{
	{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", (*cobra.Command).GenZshCompletion},
	{"fish", writeFish},
	{"powershell", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

// fishMends are corrections of cobra's script for fish: words with spaces and quotes reach kvferry as they are, and a
// candidate may begin with a dash.
var fishMends = strings.NewReplacer(
	"(string escape -- (commandline -ct))",
	"(string escape -- (string unescape -- (commandline -ct); or commandline -ct))",
	"    set -l requestComp", "    set args $args[1] (string escape -- $args[2..-1])\n    set -l requestComp",
	"(commandline -t | string escape --style=regex)",
	"(begin; string unescape -- (commandline -t); or commandline -t; end | string escape --style=regex)",
	`string split --max 1 \t`, `string split --max 1 -- \t`,
)

func writeFish(root *cobra.Command, w io.Writer) error {
	var script bytes.Buffer
	if err := root.GenFishCompletion(&script, true); err != nil {
		return err
	}
	_, err := fishMends.WriteString(w, script.String())
	return err
}

// Completion writes completion scripts. It replaces cobra's own command, which does not write to cmd's output and
// reports wrong arguments as failures instead of usage errors.
func Completion() *cobra.Command {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	return &cobra.Command{
		Use:     "completion SHELL",
		Short:   "Write a script that completes command lines in a shell",
		Long:    completionHelp,
		Example: completionExample,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return Usagef("%s", suggest.Unknown("shell", args[0], names))
			}
			return shells[i].write(cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// Completer completes an argument or a flag value.
type Completer = func(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective)

// AsksForCompletion reports whether a shell runs this command line to complete another one.
func AsksForCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// CompleteKnown completes a flag value that has known candidates.
func CompleteKnown(f Suggester) Completer {
	return func(_ *cobra.Command, _ []string, soFar string) ([]string, cobra.ShellCompDirective) {
		values, open := f.Suggest(soFar)
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if open {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return BeginWith(values, soFar), directive
	}
}

// BeginWith keeps the values that begin with soFar.
func BeginWith(values []string, soFar string) []string {
	var out []string
	for _, v := range values {
		if strings.HasPrefix(v, soFar) {
			out = append(out, v)
		}
	}
	return out
}

// GoesOn is the directive for locations: they continue after the completed part.
const GoesOn = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace

// GoesOnInOrder is the directive for names that another part may follow.
const GoesOnInOrder = GoesOn | cobra.ShellCompDirectiveKeepOrder

// SuggestNext completes the last value of a comma-separated list and leaves out values already given. A description
// may follow each value after a tab.
func SuggestNext(values []string, soFar string) []string {
	head := soFar[:strings.LastIndex(soFar, ",")+1]
	given := strings.Split(head, ",")
	var out []string
	for _, v := range values {
		if name, _, _ := strings.Cut(v, "\t"); !slices.Contains(given, name) {
			out = append(out, head+v)
		}
	}
	return out
}

// Suggester is a flag value with known candidates, for shell completion.
type Suggester interface {
	// Suggest returns the candidates that can replace soFar, each optionally followed by a tab and a description.
	// open is true if more values can follow after a comma.
	Suggest(soFar string) (values []string, open bool)
}
