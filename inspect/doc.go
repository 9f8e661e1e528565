// Package inspect holds the parts shared by commands that read datasets. A Scan cuts a source into parts and reads
// their records with several workers within one memory limit. Stores tracks the stores that a source opened and
// resolves file names. Fingerprint hashes the records of a scan; FingerprintFile stores the result.
//
// The subpackages verify, compare, dump, explain and stats compute the results of one command each; package render
// prints them. They use formats and stores only through interfaces, stream records, and need bounded memory.
package inspect
