package command

// TakeSlow takes all passes but those of quick commands.
func (s *Server) TakeSlow(cl *Client) error {
	return s.gate.pass(s.ctx(), cl, maxPasses-quickPasses, false)
}

// GiveSlow gives them back.
func (s *Server) GiveSlow(cl *Client) { s.gate.free(cl, maxPasses-quickPasses, 0) }

// The limits of scans.
const (
	MaxParked = maxParked
	SmallScan = smallScan
)
