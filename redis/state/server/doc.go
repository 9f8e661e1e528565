// Package server is shared by all commands: the server that they change, the parsing of their arguments, and
// its error replies.
package server
