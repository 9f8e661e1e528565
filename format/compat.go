package format

import (
	"math"

	"kvferry/record"
)

// PossibleLosses lists the kinds of losses that are possible from one format to another, according
// to the limits of both. It includes notes, and losses that only a damaged source has.
func PossibleLosses(from, to *Limits) []record.LossInfo {
	both := from.Types & to.Types
	may := map[string]bool{
		record.LossSameName:     from.SameName && !to.SameName,
		record.LossStream:       !to.Types.Has(record.Stream),
		record.LossStreamExpiry: to.NoStreamExpiry && !from.NoStreamExpiry,
		record.LossBlankStream:  to.NoBlankStream && !from.NoBlankStream,
		record.LossInnerNUL:     to.NoInnerNUL && !from.NoInnerNUL,
		record.LossStreamGroups: to.Types.Has(record.Stream) && !(from.StreamGroups && to.StreamGroups),
		record.LossFieldExpiry:  (from.FieldExpiry || from.Place != InDirectory) && !to.FieldExpiry,
		record.LossModule:       !to.Types.Has(record.Other),
		record.LossKeyTooLong:   narrower(float64(to.MaxKey), float64(from.MaxKey)),
		record.LossEmptyKey:     from.EmptyKey && !to.EmptyKey,
		record.LossScoreRange:   narrower(to.MaxScore, from.MaxScore),
		record.LossScoreNaN:     true,
		record.LossTooManyElements: narrower(float64(to.MaxElements), float64(from.MaxElements)) ||
			to.MaxElements > 0 && from.Unbounded&both&^to.Unbounded != 0,
		record.LossExpiryMS:    to.Seconds && !from.Seconds,
		record.LossExpiry2038:  narrower(float64(to.MaxExpireMS), float64(from.MaxExpireMS)),
		record.LossHyperLogLog: true,
		record.LossCommand:     from.Place == InFiles,
		record.LossDamaged:     true,
	}
	var out []record.LossInfo
	for _, info := range append(record.LossInfos(), to.Losses...) {
		known, ok := may[info.Kind]
		if (known || !ok) && (info.Types == 0 || info.Types&from.Types != 0) {
			out = append(out, info)
		}
	}
	return out
}

// narrower reports whether a limit is less than another; 0 and infinity mean no limit.
func narrower(to, from float64) bool {
	return to > 0 && !math.IsInf(to, 1) && (from == 0 || from > to)
}
