package format

import (
	"slices"

	"kvferry/record"
)

// PossibleLosses lists the kinds of losses that a conversion between two formats may have, by the limits of both. It
// includes notes and losses that only a damaged source causes. beyond are the losses that dataset.Beyond returns.
func PossibleLosses(from, to *Limits, beyond []string) []record.LossInfo {
	both := from.Types & to.Types
	old := to.Place == OnServer // it may be an old server
	may := map[string]bool{
		record.LossSameName:       from.SameName && !to.SameName,
		record.LossStream:         !to.Types.Has(record.Stream) || old,
		record.LossBlankStream:    to.NoBlankStream && !from.NoBlankStream,
		record.LossStreamGroups:   to.Types.Has(record.Stream) && groupsLost(from, to),
		record.LossFieldExpiry:    (from.FieldExpiry || from.FieldsRead || from.Place.IsRedis()) && (!to.FieldExpiry || old),
		record.LossMemberExpiry:   from.MembersExpire || from.Place.IsRedis(),
		record.LossModule:         !to.Types.Has(record.Other) || opaqueLost(from, to),
		record.LossScorePrecision: both.Has(record.ZSet) && from.WholeScores != to.WholeScores,
		record.LossScoreNaN:       true,
		record.LossHyperLogLog:    true,
		record.LossDatabase:       to.MaxDBs > 0 && !from.Layouts, // a source with Layouts is Pika, with the same numbers
		record.LossCluster:        from.Cluster && to.Cluster,
		record.LossCommand:        from.Place == InFiles,
		record.LossDamaged:        true,
		record.LossNewer:          true,
	}
	for _, kind := range []string{record.LossKeyTooLong, record.LossEmptyKey, record.LossInnerNUL, record.LossTooManyElements,
		record.LossScoreRange, record.LossStreamExpiry, record.LossExpiryMS, record.LossExpiry2038, record.LossExpiry2106} {
		may[kind] = slices.Contains(beyond, kind) || kind == record.LossExpiryMS && to.MinExpireMS > 0
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
