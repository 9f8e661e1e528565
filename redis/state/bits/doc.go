// Package bits is the commands on strings of bits: fields of them and HyperLogLogs.
package bits
