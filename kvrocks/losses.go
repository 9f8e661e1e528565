package kvrocks

import (
	"math"

	"kvferry/record"
)

// LossExpiry2106: an expiry does not fit the 32 bits of seconds that servers before 2.4 have.
const LossExpiry2106 = "expiry-2106"

// maxOldExpiry is the last moment that the old form of metadata can hold.
const maxOldExpiry = math.MaxUint32 * 1000

var lossInfos = []record.LossInfo{
	{Kind: LossExpiry2106, Text: "An expiry beyond 2106-02-07T06:28:15Z, where the 32 bits of seconds of Kvrocks before 2.4 end, is brought forward to that moment."},
}
