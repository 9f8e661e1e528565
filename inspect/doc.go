// Package inspect is what the commands that read datasets stand on. A Scan cuts a source into parts and reads their records
// with several workers, which share its memory. Stores knows the stores that a source opened and names their files.
// Fingerprint hashes what a scan reads, and FingerprintFile keeps the result.
//
// What each command computes is in a package below: verify, compare, dump, explain and stats; package render prints it.
// They use formats and stores only through their interfaces, stream records, and need a bounded amount of memory.
package inspect
