package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvferry/convert"
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
	all := commandLine(allowing(args, loss.Kinds()))
	aim := "nothing"
	if len(rest) > 0 {
		aim = "only " + strings.Join(rest, ", ")
	}
	better = allowing(better, rest)
	switch {
	case names:
		better = replacing(better, "--on-conflict", "rename")
		return fmt.Sprintf("\nto lose %s, rename the keys:\n  %s\nto lose the keys, too:\n  %s", aim, commandLine(better), all)
	case how != nil:
		return fmt.Sprintf("\nto keep more:\n  %s\nto lose %s, too:\n  %s", commandLine(better), strings.Join(how, ", "), all)
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
