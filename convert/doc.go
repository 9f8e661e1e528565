// Package convert converts a dataset to another format: plan, run, prove, publish.
//
//	plan     what there is to do, as a value: tasks of one database, one group of the target's
//	         types and one span of user keys. It depends on the source and the options alone.
//	run      the tasks, on several workers, into <target>.kvferry/ beside the target. Each finished
//	         task is written to a journal there, from which an interrupted run goes on.
//	prove    reopen what was written, read it back as records and compare the fingerprints.
//	publish  sync, and rename to the target's path, which exists only when it is complete.
//
// The package goes through these phases, in an attempt that has all that a pass learns, and says how they went, in a Report.
// The parts are below it, and none of them knows it: plan and outcome are what goes into tasks and what comes out of them,
// pool runs them, transfer does one, work keeps the journal and the names, census counts what was made, and paths is where
// things lie.
//
// The package uses formats and stores only through their interfaces.
package convert
