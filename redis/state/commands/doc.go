// Package commands does to the keys of a server what commands say: what a log of commands means.
//
//	name -> table -> a function of a file, by type -> methods of state.Value
//
//	entries access                         the table, and the keys that commands read and write
//	keys strings lists hashes sets zsets   commands on one type
//	zstore geo sort                        commands that make a key of others
//	streams, bits                          in packages of their own
//
// Commands do what Redis does with them while it loads a log: keys that have expired stay, and a command that
// is answered by an error changes nothing. A command whose effect cannot be known exactly is an UnsupportedError. The keys
// that it writes are lost then, and those that later commands make of them; all others stay exact.
package commands
