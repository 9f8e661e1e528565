package dataset

import (
	"testing"

	"kvferry/format"
	"kvferry/record"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct {
		ms     int64
		kind   string
		detail string
		then   int64
	}{
		{0, "", "", 0},
		{1000, "", "", 1000},
		{-1000, "", "", -1000},
		{1001, record.LossExpiryMS, "the expiry is rounded up to seconds", 1001},
		{LastSecond*1000 - 1, record.LossExpiryMS, "the expiry is rounded up to seconds", LastSecond*1000 - 1},
		{LastSecond * 1000, "", "", LastSecond * 1000},
		{LastSecond*1000 + 1, record.LossExpiry2038, "expires 2038-01-19T03:14:07Z, brought forward to 2038-01-19T03:14:07Z, where 32 bits end", LastSecond * 1000},
		{4102444800000, record.LossExpiry2038, "expires 2100-01-01T00:00:00Z, brought forward to 2038-01-19T03:14:07Z, where 32 bits end", LastSecond * 1000},
	} {
		h := record.Header{Type: record.String, ExpireMS: c.ms}
		a := &Adapter{Limits: format.Limits{Types: record.AllTypes, Seconds: true, MaxExpireMS: LastSecond * 1000,
			Signed: record.AllTypes}}
		var l record.Loss
		ok := a.limit(&h, &l)
		if ok != (c.kind != "") || l.Kind != c.kind || l.Detail != c.detail || l.Drops || h.ExpireMS != c.then {
			t.Errorf("%d ms: %v %+v, then %d", c.ms, ok, l, h.ExpireMS)
		}
	}
}
