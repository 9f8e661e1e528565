// Package work manages the work directory of a conversion, beside the target. It holds the state that an interrupted run
// is resumed from: the identity of the run and its finished steps. The package also checks the paths of
// sources and targets, counts the files and rows of a finished target, publishes the target and its report, and exports
// files in parts (Export).
//
// The journal is a file of JSON lines. Each line is on disk before a step begins that depends on it. A truncated last
// line was never synced and is dropped.
//
//	{"plan":{…}}        Identity: source, target and options; always the first line, and only that
//	{"task":{…}}        result.Result: a task is done and its tables are on disk; the last line of a number counts
//	{"finishing":true}  the tables are about to become a database
//	{"written":{…}}     Census: the database is complete and consists of these files
//	{"proved":true}     the target is proved, unless the proof is off, and its report is written
//
// The plan holds the identity of the run. Only a run with the same identity may continue it:
//
//	version  journalVersion; a run with another version cannot be continued
//	source   the path with symbolic links resolved, or the address
//	files    path, size and mtime of each file of the source; real is the target of a symbolic link.
//	         Paths in --wal-dir begin with "wal-dir:"
//	options  the options that affect the result, by their names on the command line
//	now      the time as of which keys expire; a resumed run uses the same
//	resort   how the tables of the source are out of order, if they are
//	began    the start of the first process, and target, the state that a server needs to continue
//	plan     the plan.Plan
package work
