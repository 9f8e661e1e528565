// Package streams has the commands on streams: on their entries (XADD and its kin), and on their groups, consumers and
// pending entries (XGROUP, XCLAIM, XACK). Reading with a group is in no log: what it changes is written as XCLAIM.
package streams
