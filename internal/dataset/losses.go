package dataset

import (
	"fmt"
	"math"
	"strings"

	"kvferry/record"
)

// KeepIf keeps the elements that keep says, in place; nothing is moved while all are kept.
func KeepIf(batch []record.Element, keep func(*record.Element) bool) []record.Element {
	n := 0
	for i := range batch {
		if !keep(&batch[i]) {
			continue
		}
		if n != i {
			batch[n] = batch[i]
		}
		n++
	}
	return batch[:n]
}

// KeepScores keeps the elements whose scores are from -limit to limit, which NaN is not. They are those that the
// engine takes.
func KeepScores(batch []record.Element, engine string, limit float64, report func(record.Loss)) []record.Element {
	return KeepIf(batch, func(e *record.Element) bool {
		if math.Abs(e.Score) <= limit {
			return true
		}
		l := record.Loss{Kind: record.LossScoreNaN, Drops: true,
			Detail: fmt.Sprintf("the score of member %s is not a number", record.Quote(e.Name))}
		if !math.IsNaN(e.Score) {
			l.Kind = record.LossScoreRange
			end := strings.ReplaceAll(fmt.Sprint(limit), "+", "")
			l.Detail = fmt.Sprintf("member %s has score %v; %s accepts scores from -%s to %s", record.Quote(e.Name), e.Score, engine, end, end)
		}
		report(l)
		return false
	})
}
