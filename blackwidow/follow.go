package blackwidow

// Follows reports whether a Pika of this format can replicate from one of the source format: Pika 3.0 from
// Pika 2.3, whose binlog has the old type. Later versions cannot.
func (f blackwidowFormat) Follows(source string) (conditions []string, ok bool) {
	if source != "nemo" || f.server == serverPika35 {
		return nil, false
	}
	return []string{
		"the new server is Pika 3.0.6, or 3.0.16 or a later 3.0 with \"identify-binlog-type : old\" in its configuration",
		"the old server is Pika 2.3 and still has that binlog file",
		"the host is the master: a dump taken on a replica names the replica, which has a binlog of its own",
	}, true
}
