package command

import (
	"context"
	"fmt"
	"time"

	"kvferry/record"
	"kvferry/serve"
	"kvferry/serve/master"
)

// idleEvery is the time between the lines on a terminal that show a server at work.
const idleEvery = time.Minute

// idle prints a line about the server at each tick until ctx is done.
func idle(ctx context.Context, tick <-chan time.Time, s *serve.Server, m *master.Master) {
	before := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		now := s.Stats.Commands.Load()
		s.Log(fmt.Sprintf("%s, %s; %s, %s since the last line; %s received, %s sent", record.Count(int64(s.Clients.Len()), "client"),
			record.Count(int64(m.Replicas()), "replica"), record.Count(now, "command"), record.Number(now-before),
			record.Bytes(s.Stats.In.Load()), record.Bytes(s.Stats.Out.Load())))
		before = now
	}
}
