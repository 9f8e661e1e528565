package geo

import (
	"math"
	"testing"
)

// TestPlaces uses the example of Redis' documents.
func TestPlaces(t *testing.T) {
	palermo, catania := PointOf(3479099956230698), PointOf(3479447370796909)
	if math.Abs(palermo.Lon-13.361389) > 1e-5 || math.Abs(palermo.Lat-38.115556) > 1e-5 {
		t.Error(palermo)
	}
	if d := Distance(palermo, catania); math.Abs(d-166274.1516) > 0.1 {
		t.Error(d)
	}
	if d := Distance(Point{1, 2}, Point{1, 3}); math.Abs(d-EarthRadius*Radians(1)) > 1e-6 {
		t.Error(d)
	}
}

func TestParsePoint(t *testing.T) {
	if p, err := ParsePoint([]byte("13.5"), []byte("-38")); err != nil || p != (Point{13.5, -38}) {
		t.Error(p, err)
	}
	for _, c := range [][2]string{{"x", "1"}, {"1", "x"}, {"181", "0"}, {"0", "86"}} {
		if _, err := ParsePoint([]byte(c[0]), []byte(c[1])); err == nil {
			t.Error(c)
		}
	}
}
