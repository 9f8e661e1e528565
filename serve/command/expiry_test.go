package command_test

import (
	"testing"
	"time"

	"kvferry/serve/command/fake"
)

// TestRemainingTime: the remaining time gets shorter while the server runs and is never 0; expiries do not change. Rounding
// is that of Redis 8: seconds of keys to the nearest one, those of fields up.
func TestRemainingTime(t *testing.T) {
	s, f := fake.New(t, "string s x", "string never x", "hash h f=1 g=2")
	start := fake.Now.UnixMilli()
	f.Records["s"].ExpireMS = start + 10_400
	f.Records["h"].Elems[0].ExpireMS = start + 10_400
	c := fake.NewCaller(t, s)
	still := []string{"EXPIRETIME s", `:"1700000010"`, "PEXPIRETIME s", `:"1700000010400"`, "HEXPIRETIME h FIELDS 2 f g", `*2[:"1700000011" :"-1"]`,
		"HPEXPIRETIME h FIELDS 1 f", `*1[:"1700000010400"]`, "TTL never", `:"-1"`, "PTTL none", `:"-2"`, "HTTL none FIELDS 1 f", `*1[:"-2"]`}
	c.Check("PTTL s", `:"10400"`, "TTL s", `:"10"`, "HPTTL h FIELDS 2 f g", `*2[:"10400" :"-1"]`, "HTTL h FIELDS 2 g f", `*2[:"-1" :"11"]`, "TIME", `*2[$"1700000000" $"0"]`)
	c.Check(still...)
	now := fake.Now
	s.Clock = func() time.Time { return now }
	now = fake.Now.Add(3 * time.Second)
	c.Check("PTTL s", `:"7400"`, "TTL s", `:"7"`, "HPTTL h FIELDS 1 f", `*1[:"7400"]`, "HTTL h FIELDS 1 f", `*1[:"8"]`, "TIME", `*2[$"1700000003" $"0"]`)
	now = fake.Now.Add(time.Hour)
	c.Check("PTTL s", `:"1"`, "TTL s", `:"0"`, "HPTTL h FIELDS 1 f", `*1[:"1"]`, "HTTL h FIELDS 1 f", `*1[:"1"]`, "GET s", `$"x"`)
	c.Check(still...)
}
