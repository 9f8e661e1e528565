// Package work keeps the directory beside the target in which a conversion works, from which an interrupted one goes on: what
// a run is, what it has done, and how its target and report come to their places.
//
// The journal is a file of JSON lines. Each is on disk before what follows from it begins; one that is cut off was never
// synced and is dropped.
//
//	{"plan":{…}}        Identity: what is converted into what, and how; the first line, and no other
//	{"task":{…}}        outcome.Result: a task is done and its tables are on disk; the last one of a number counts
//	{"finishing":true}  the tables are being made a database
//	{"written":{…}}     census.Census: that is done, and this is what the target consists of
//	{"proved":true}     the target read back equal, or was not to be read back, and its report is written
//
// The plan has the identity of the run, without which nobody may go on with it:
//
//	version  6; another one cannot be continued
//	source   the path behind symbolic links, or the address
//	files    path, size and mtime of each file of the source; real is where a symbolic link leads.
//	         Those of --wal-dir begin with "wal-dir:"
//	options  those that the result depends on, as the command line names them
//	now      the time by which keys expire; a run that continues takes it over
//	resort   how the tables of the source were found out of order, if they were
//	began    when the first process began, and target, what a server has to know to go on
//	plan     the plan.Plan
package work
