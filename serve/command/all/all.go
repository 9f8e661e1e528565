// Package all lists the commands on keys and values.
package all

import (
	"slices"

	"kvferry/serve/command"
	"kvferry/serve/command/collections"
	"kvferry/serve/command/documents"
	"kvferry/serve/command/keys"
	"kvferry/serve/command/streams"
	"kvferry/serve/command/strings"
)

// Commands returns the commands, and some more, which replace others of their name.
func Commands(more ...command.Command) []command.Command {
	return slices.Concat(keys.Commands(), strings.Commands(), collections.Commands(), streams.Commands(), documents.Commands(), more)
}
