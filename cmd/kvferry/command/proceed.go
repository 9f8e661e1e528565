package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// refusalText ends a refusal of losses with complete command lines: people copy them. One that another flag, or another
// name of the target, lets keep more is first.
func refusalText(err error, args []string) string {
	var loss *convert.LossError
	if !errors.As(err, &loss) || keptText(err, args) != "" {
		return ""
	}
	var rest []string // kinds that the better command line still loses
	better, how, names, damaged := args, []string(nil), false, false
	for _, l := range loss.Losses {
		more := avoiding(better, loss.Target, l.Avoid)
		switch {
		case l.Note:
		case l.Kind == record.LossSameName && !l.Allowed:
			names = true
		case more != nil && !l.Allowed:
			better, how = more, append(how, l.Kind)
		default:
			rest = append(rest, l.Kind)
			damaged = damaged || !l.Allowed && (l.Kind == record.LossDamaged || l.Kind == record.LossNewer)
		}
	}
	all := cli.CommandLine(allowing(args, loss.Kinds()))
	aim := "nothing"
	if len(rest) > 0 {
		aim = "only " + strings.Join(rest, ", ")
	}
	better = allowing(better, rest)
	switch {
	case names:
		better = replacing(better, "--on-conflict", "rename")
		return fmt.Sprintf("\nto lose %s, rename the keys:\n  %s\nto lose the keys as well:\n  %s", aim, cli.CommandLine(better),
			all)
	case how != nil:
		return fmt.Sprintf("\nto keep more:\n  %s\nto lose %s as well:\n  %s", cli.CommandLine(better),
			strings.Join(how, ", "), all)
	case damaged:
		return "\nto convert the rest:\n  " + all
	}
	return "\nto convert without them:\n  " + all
}

// avoiding follows the advice of a loss: a flag with a value, or another name of the target. nil: it says neither.
func avoiding(args []string, target, advice string) []string {
	words := strings.Fields(advice)
	if strings.HasPrefix(advice, "--") && len(words) > 1 {
		return replacing(args, words[0], words[1])
	}
	const named = "a target named "
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, target+":") })
	if !strings.HasPrefix(advice, named) || i < 0 {
		return nil
	}
	out := slices.Clone(args)
	out[i] = words[3] + strings.TrimPrefix(args[i], target+":")
	return out
}

// cancelledText describes the work a cancelled command left behind and how to continue.
func cancelledText(err error, args []string) string {
	var unfinished *convert.UnfinishedError
	if !errors.As(err, &unfinished) {
		return "cancelled"
	}
	dir := escape.Text(unfinished.Dir)
	switch {
	case unfinished.Kept:
		return fmt.Sprintf("cancelled; the work so far is kept in %s%s", dir, goOn(args))
	case unfinished.Resume:
		return fmt.Sprintf("cancelled before any work was done; %s was removed; start again with\n  %s", dir,
			cli.CommandLine(args))
	}
	return fmt.Sprintf("cancelled; %s was removed", dir)
}

// goOn ends a message about kept work with the command line that continues the conversion.
func goOn(args []string) string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--discard" })
	if !slices.Contains(args, "--resume") && !slices.Contains(args, "--finish") && !slices.Contains(args, "--assemble") {
		args = afterName(args, "--resume")
	}
	return "; continue with\n  " + cli.CommandLine(args)
}

// afterName inserts flags after the name of a command that has parts.
func afterName(args []string, flags ...string) []string {
	name := func(arg string) bool {
		return slices.Contains([]string{"convert", "fingerprint", "verify", "inspect", "dump"}, arg)
	}
	return slices.Insert(slices.Clone(args), slices.IndexFunc(args, name)+1, flags...)
}

// replacing replaces a flag of a conversion.
func replacing(args []string, name, value string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == name:
			i++ // its value
		case !strings.HasPrefix(args[i], name+"="):
			out = append(out, args[i])
		}
	}
	if value == "" {
		return out
	}
	return afterName(out, name, value)
}

// allowing replaces --allow-loss by one that allows the losses of these kinds.
func allowing(args, kinds []string) []string {
	return replacing(args, "--allow-loss", strings.Join(kinds, ","))
}

// keptText explains how to continue a failed conversion whose work is kept.
func keptText(err error, args []string) string {
	var unfinished *convert.UnfinishedError
	if !errors.As(err, &unfinished) || !unfinished.CanGoOn() {
		return ""
	}
	if _, ok := errors.AsType[*format.ExistingError](err); ok {
		return "" // the same command line would fail again; the error names the flag to add
	}
	if loss, ok := errors.AsType[*convert.LossError](err); ok {
		args = allowing(args, loss.Kinds())
	}
	return goOn(args)
}

// leftText lists the command lines that continue an unfinished conversion, or start it over.
func leftText(err error, args []string) string {
	var left *convert.LeftError
	if !errors.As(err, &left) {
		return ""
	}
	return "\nto continue it:\n  " + cli.CommandLine(afterName(args, "--resume")) + "\nto start over:\n  " +
		cli.CommandLine(afterName(args, "--discard"))
}

// pastText ends a refusal of damage with the command line that reads the rest.
func pastText(err error, args []string) string {
	var past *pastError
	if !errors.As(err, &past) {
		return ""
	}
	args = slices.Clone(args)
	at := len(args)
	if i := slices.Index(args, "--"); i >= 0 {
		at = i
	}
	return "\nto read the rest:\n  " + cli.CommandLine(slices.Insert(args, at, "--salvage"))
}

// missingText lists the commands that make the missing parts.
func missingText(err error, args []string) string {
	var missing *convert.MissingError
	if !errors.As(err, &missing) {
		return ""
	}
	args = withoutSteps(args)
	if reports, ok := errors.AsType[*missingReports](err); ok {
		args = reports.words
	}
	if missing.Assemble {
		return "; run this first:\n  " + cli.CommandLine(afterName(args, "--assemble"))
	}
	if missing.Parts == 0 {
		return "; run each part first, as with\n  " + cli.CommandLine(afterName(args, "--part", "1/8"))
	}
	flag := "--part"
	if missing.Proofs {
		flag = "--prove"
	}
	var b strings.Builder
	b.WriteString("; run")
	for _, k := range missing.Missing[:min(maxMissing, len(missing.Missing))] {
		b.WriteString("\n  " + cli.CommandLine(afterName(args, flag, strconv.Itoa(k)+"/"+strconv.Itoa(missing.Parts))))
	}
	if more := len(missing.Missing) - maxMissing; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

// maxMissing is the number of missing parts whose commands are listed.
const maxMissing = 20

// withoutSteps leaves out the flags that say which step of a conversion in parts to run.
func withoutSteps(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		switch name, _, given := strings.Cut(args[i], "="); name {
		case "--prove", "--proofs":
			if !given {
				i++
			}
		case "--finish", "--assemble":
		default:
			out = append(out, args[i])
		}
	}
	return out
}
