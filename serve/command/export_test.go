package command

import "time"

// TakeSlow takes all passes but those of small commands.
func (s *Server) TakeSlow(cl *Client) error {
	return s.gate.take(s.ctx(), cl, largeShare, largePasses)
}

// GiveSlow gives them back.
func (s *Server) GiveSlow(cl *Client) { s.gate.give(cl, largeShare, largePasses) }

// Steal takes all large passes that may be taken, stalled clients or not, and returns their number.
func (s *Server) Steal() (n int) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	for v := range s.gate.values {
		n += int(Number(v.stop()))
	}
	return n
}

// LookAgain makes the next read of a value call Gone, which calls this.
func (cl *Client) LookAgain() { cl.looked = time.Time{} }

// Patience is the time after which a stalled client is disconnected.
const Patience = patience

// The limits of scans.
const (
	MaxParked = maxParked
	SmallScan = smallScan
)
