package convert

import (
	"math"
	"path/filepath"
	"slices"

	"kvferry/convert/work"
	"kvferry/internal/sys/disk"
)

// Estimate holds the resources that a conversion needs, estimated by converting a sample of the
// source and reading it back.
type Estimate struct {
	// TargetBytes is the size of the target. DiskBytes is the space needed to build it, without temporary
	// files, and TempBytes the most that these need.
	TargetBytes int64 `json:"target_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
	TempBytes   int64 `json:"temp_bytes"`
	// Seconds is the total time on this machine; Prepare (see Timings), Run, Finish and Prove are parts of it.
	Seconds float64 `json:"seconds"`
	Prepare float64 `json:"prepare_seconds,omitempty"`
	Run     float64 `json:"run_seconds"`
	Finish  float64 `json:"finish_seconds"`
	Prove   float64 `json:"prove_seconds"`
	// SampleBytes is the size of the sample, of SourceBytes in all.
	SampleBytes int64 `json:"sample_bytes"`
	SourceBytes int64 `json:"source_bytes"`
	// Volumes are the disks of the target and the temporary files.
	Volumes []Volume `json:"volumes,omitempty"`
	Fits    bool     `json:"fits"` // as far as known
}

// usualBudget is the default size of a sample. Dry runs with and without --estimate and the space check use the same,
// so that they predict the same target size.
func usualBudget(size int64) int64 { return min(max(size/100, 64<<20), 256<<20) }

// leastBudget is the smallest sample; less would not be representative.
const leastBudget = 4 << 20

// Volume is a disk that a conversion writes to.
type Volume struct {
	Path   string `json:"path"`
	Target bool   `json:"target"`    // holds the target
	Temp   bool   `json:"temporary"` // holds temporary files
	Needed int64  `json:"needed_bytes"`
	// Free is -1 if unknown.
	Free int64 `json:"free_bytes"`
}

// Fits reports whether there is enough space, or the free space is unknown.
func (v *Volume) Fits() bool { return v.Free < 0 || v.Needed <= v.Free }

// volumes lists the disks of a conversion with the space needed on each.
func (e *Estimate) volumes(o *Options) {
	parent := filepath.Dir(filepath.Clean(o.Target.Path))
	if o.Plan {
		parent, _ = work.Nearest(o.Target.Path) // checkPaths found it
	}
	place := volumeOf(parent)
	place.Target, place.Needed = true, e.DiskBytes
	list := []diskVolume{place}
	temp := place
	if o.TempDir != "" {
		temp = volumeOf(o.TempDir)
	}
	if temp.Free >= 0 && place.Free >= 0 && temp.device != place.device {
		temp.Needed, temp.Target = 0, false
		list = append(list, temp)
	}
	last := &list[len(list)-1]
	last.Temp = true
	last.Needed += e.TempBytes
	e.Volumes = nil
	for _, v := range list {
		e.Volumes = append(e.Volumes, v.Volume)
	}
	e.Fits = !slices.ContainsFunc(e.Volumes, func(v Volume) bool { return !v.Fits() })
}

type diskVolume struct {
	Volume
	device uint64
}

func volumeOf(dir string) diskVolume {
	v := diskVolume{Volume: Volume{Path: dir, Free: -1}}
	if s, err := disk.FreeSpace(dir); err == nil {
		v.Free, v.device = s.Free, s.Device
	}
	return v
}

// scale reduces an estimate to a part of the work.
func (e *Estimate) scale(part float64) {
	e.DiskBytes = int64(math.Ceil(float64(e.DiskBytes) * part))
}
