// Package commands does to the keys of a server what commands say: what a log of commands means.
//
//	name -> table -> a function of a file, by type -> methods of state.Value
//
//	keys bits hll strings lists hashes sets zsets   commands on one type
//	zstore geo sort                                 commands that make a key of others
//	streams                                         in a package of their own
//
// Commands do what Redis does with them while it loads a log: keys that have expired stay, and a command that
// is answered by an error changes nothing. A command whose effect cannot be known exactly is an UnsupportedError: passing
// over one may change any key that comes later.
package commands
