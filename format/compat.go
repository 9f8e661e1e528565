package format

import (
	"math"
	"slices"

	"kvferry/record"
)

// PossibleLosses lists the kinds of losses that a conversion between two formats may have, by the limits of both. It
// includes notes and losses that only a damaged source causes.
func PossibleLosses(from, to *Limits) []record.LossInfo {
	both := from.Types & to.Types
	old := to.Place == OnServer // it may be an old server
	earlier := narrower(float64(to.MaxExpireMS), float64(from.MaxExpireMS))
	may := map[string]bool{
		record.LossSameName:       from.SameName && !to.SameName,
		record.LossStream:         !to.Types.Has(record.Stream) || old,
		record.LossStreamExpiry:   to.NoStreamExpiry && !from.NoStreamExpiry,
		record.LossBlankStream:    to.NoBlankStream && !from.NoBlankStream,
		record.LossInnerNUL:       to.NoInnerNUL && !from.NoInnerNUL,
		record.LossStreamGroups:   to.Types.Has(record.Stream) && groupsLost(from, to),
		record.LossFieldExpiry:    (from.FieldExpiry || from.FieldsRead || from.Place.IsRedis()) && (!to.FieldExpiry || old),
		record.LossMemberExpiry:   from.MembersExpire || from.Place.IsRedis(),
		record.LossModule:         !to.Types.Has(record.Other) || opaqueLost(from, to),
		record.LossKeyTooLong:     narrower(float64(to.MaxKey), float64(from.MaxKey)) || to.EveryKey,
		record.LossEmptyKey:       from.EmptyKey && !to.EmptyKey || to.EveryKey,
		record.LossScoreRange:     narrower(to.MaxScore, from.MaxScore),
		record.LossScorePrecision: both.Has(record.ZSet) && from.WholeScores != to.WholeScores,
		record.LossScoreNaN:       true,
		record.LossTooManyElements: narrower(float64(to.MaxElements), float64(from.MaxElements)) ||
			to.MaxElements > 0 && from.Unbounded&both&^to.Unbounded != 0,
		record.LossExpiryMS:    to.Seconds && !from.Seconds || to.MinExpireMS > 0,
		record.LossExpiry2038:  earlier && to.MaxExpireMS <= math.MaxInt32*1000,
		record.LossExpiry2106:  earlier && to.MaxExpireMS > math.MaxInt32*1000,
		record.LossHyperLogLog: true,
		record.LossDatabase:    to.MaxDBs > 0 && !from.Layouts, // a source with Layouts is Pika, with the same numbers
		record.LossCluster:     from.Cluster && to.Cluster,
		record.LossCommand:     from.Place == InFiles,
		record.LossDamaged:     true,
		record.LossNewer:       true,
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

// groupsLost reports whether a target may lose consumer groups of streams, or parts of them.
func groupsLost(from, to *Limits) bool {
	return !(from.StreamGroups && to.StreamGroups) || from.Unowned || to.NamedGroups && !from.NamedGroups
}

// opaqueLost reports whether a source may have values of type record.Other that a target cannot hold.
func opaqueLost(from, to *Limits) bool {
	return slices.ContainsFunc(from.Opaque, func(kind string) bool {
		return !slices.Contains(to.Opaque, kind) || slices.Contains(to.Unheld, kind)
	})
}

// narrower reports whether a limit is less than another; 0 and infinity mean no limit.
func narrower(to, from float64) bool {
	return to > 0 && !math.IsInf(to, 1) && (from == 0 || from > to)
}
