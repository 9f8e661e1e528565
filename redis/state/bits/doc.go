// Package bits has the commands on strings of bits, including bit fields, and on HyperLogLogs.
package bits
