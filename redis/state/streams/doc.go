// Package streams has the commands on streams: on their entries (XADD and its kin), and on their groups,
// consumers and pending entries (XGROUP, XCLAIM, XACK). Logs contain no reads with a group: a server logs
// their effect as XCLAIM.
package streams
