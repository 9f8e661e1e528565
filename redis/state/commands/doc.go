// Package commands applies the commands of a log to the keys of a server.
//
//	name -> table -> a function of a file, by type -> methods of state.Value
//
//	entries access                         functions for the table of syntax, and the keys that commands read and write
//	keys strings lists hashes sets zsets   commands on one type
//	bits hll streams groups refs           commands on parts of strings, and on streams
//	zstore geo sort                        commands that make a key of others
//	streams, bits                          in packages of their own
//
// Commands behave as in Redis while it loads a log: expired keys stay, and a command with an error reply
// changes no keys. A command whose effect cannot be known exactly returns an UnsupportedError. The keys that
// it writes are then lost, and so are the keys that later commands derive from them; all other keys stay
// exact.
package commands
