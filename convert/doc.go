// Package convert converts a dataset to another format: plan, run, prove, publish.
//
//	plan     what there is to do, as a value: tasks of one database, one group of the target's
//	         types and one span of user keys. It depends on the source and the options alone.
//	run      the tasks, on several workers, into <target>.kvferry/ beside the target. Each finished
//	         task is written to a journal there, from which an interrupted run goes on.
//	prove    reopen what was written, read it back as records and compare the fingerprints.
//	publish  sync, and rename to the target's path, which exists only when it is complete.
//
// The package uses formats and stores only through their interfaces.
package convert
