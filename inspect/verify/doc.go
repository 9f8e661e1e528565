// Package verify reads everything in a dataset and lists what is wrong with it: stores that cannot be opened, damaged blocks,
// records that contradict themselves, rows that no record has, and tables that are not what their properties say.
//
// It goes on after a finding. What cannot be read is skipped and named, so that an Outcome says of the rest what it can.
package verify
