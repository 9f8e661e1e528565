package keyspace

import "time"

// Patient sets how long Exact waits.
func (k *Keyspace) Patient(d time.Duration) { k.patience = d }
