package command

// TakeSlow takes all passes but those of small commands.
func (s *Server) TakeSlow(cl *Client) error {
	return s.gate.take(s.ctx(), cl, largePasses)
}

// GiveSlow gives them back.
func (s *Server) GiveSlow(cl *Client) { s.gate.give(cl, largePasses) }

// The limits of scans.
const (
	MaxParked = maxParked
	SmallScan = smallScan
)
