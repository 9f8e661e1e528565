// Package verify reads a whole dataset and lists its faults: stores that cannot be opened, damaged blocks,
// contradictory records, rows that belong to no record, and tables that do not match their properties.
//
// It continues after a finding. It skips unreadable parts and names them, so an Outcome covers the rest.
package verify
