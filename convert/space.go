package convert

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"kvferry/convert/work"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// roomy is the assumed maximum of target size divided by source size. If the disks have that much room, and twice the
// source's size for temporary files, no estimate is made.
const roomy = 8

// SpaceError means that a conversion does not fit on its disks. Nothing was converted.
type SpaceError struct {
	Estimate *Estimate // nil if not even a sample fits
	Err      error     // why not even a sample fits
}

// Unwrap returns the reason why a sample does not fit.
func (e *SpaceError) Unwrap() error { return e.Err }

// Error describes which space is missing, and what to do.
func (e *SpaceError) Error() string {
	if e.Estimate == nil {
		return fmt.Sprintf("not enough space: not even a sample fits: %s; --force-space starts anyway", e.Err)
	}
	var parts []string
	temp := false
	for _, v := range e.Estimate.Volumes {
		if !v.Fits() {
			parts = append(parts, fmt.Sprintf("%s has %s free, and about %s are needed for %s", v.Path, record.Bytes(v.Free),
				record.Bytes(v.Needed), v.Use()))
			temp = temp || v.Temp && e.Estimate.TempBytes > 0
		}
	}
	advice := "free some space or name a target on another disk"
	if temp {
		advice += ", or another one for temporary files with --temp-dir"
	}
	return fmt.Sprintf("not enough space: %s (estimated from a sample); %s; --force-space starts anyway",
		strings.Join(parts, "; "), advice)
}

// Use describes the purpose of a volume.
func (v *Volume) Use() string {
	switch {
	case !v.Temp:
		return "the target"
	case !v.Target:
		return "temporary files"
	}
	return "the target and temporary files"
}

// checkSpace refuses a conversion that does not fit on its disks. It counts only unfinished tasks: the free space
// already reflects the others.
func (a *attempt) checkSpace(ctx context.Context) error {
	if a.o.ForceSpace || a.o.onServer() {
		return nil
	}
	var todo int64
	for _, t := range a.part.Of(a.id.Plan.Tasks) {
		if len(a.results) == 0 || a.results[t.N] == nil {
			todo += t.Bytes
		}
	}
	est := &Estimate{DiskBytes: roomy * todo, TempBytes: 2 * todo}
	est.volumes(a.o)
	if todo == 0 || est.Fits {
		return nil
	}
	budget := usualBudget(a.id.Plan.Bytes)
	for _, v := range est.Volumes {
		budget = min(budget, max(v.Free/4, 1))
	}
	a.meter.Doing("converts a sample, to see whether the target fits")
	est, _, err := a.estimate(ctx, a.o.Target.Create, filepath.Join(a.work.Spools(), "sample"), budget, false)
	if disk.IsFull(err) {
		return &SpaceError{Err: &work.FullError{Err: err}}
	}
	if err != nil {
		return err
	}
	est.scale(float64(todo) / float64(max(a.id.Plan.Bytes, 1)))
	est.volumes(a.o)
	if est.Fits {
		return nil
	}
	return &SpaceError{Estimate: est}
}
