// Package geo has the places of Redis: scores of sorted sets that are geohashes.
package geo

import (
	"math"

	"kvferry/internal/shared/argument"
)

// Places are sorted sets whose scores are geohashes of 52 bits: longitude and latitude, bit by bit in turn.
const (
	Bits        = 26
	MaxLatitude = 85.05112878
	EarthRadius = 6372797.560856 // meters
)

// Point is a place, in degrees.
type Point struct{ Lon, Lat float64 }

// IsHash reports whether a score can be a place; other scores never match.
func IsHash(score float64) bool { return score >= 0 && score < 1<<(2*Bits) }

// PointOf returns the middle of a geohash's cell.
func PointOf(score float64) Point {
	var lon, lat uint64
	for hash, i := uint64(score), 0; i < Bits; i++ {
		lat |= hash >> (2 * i) & 1 << i
		lon |= hash >> (2*i + 1) & 1 << i
	}
	middle := func(n uint64, limit float64) float64 {
		const cells = 1 << Bits
		lo := -limit + float64(n)/cells*(2*limit)
		hi := -limit + float64(n+1)/cells*(2*limit)
		return min(max((lo+hi)/2, -limit), limit)
	}
	return Point{middle(lon, 180), middle(lat, MaxLatitude)}
}

// Radians converts degrees.
func Radians(deg float64) float64 { return deg * (math.Pi / 180) }

// Distance returns the meters between two places.
func Distance(a, b Point) float64 {
	v := math.Sin((Radians(b.Lon) - Radians(a.Lon)) / 2)
	if v == 0 {
		return EarthRadius * math.Abs(Radians(b.Lat)-Radians(a.Lat))
	}
	u := math.Sin((Radians(b.Lat) - Radians(a.Lat)) / 2)
	return 2 * EarthRadius * math.Asin(math.Sqrt(u*u+math.Cos(Radians(a.Lat))*math.Cos(Radians(b.Lat))*v*v))
}

// Units are meters by the names of units, in upper case.
var Units = map[string]float64{"M": 1, "KM": 1000, "FT": 0.3048, "MI": 1609.34}

// ParsePoint reads a longitude and a latitude.
func ParsePoint(lon, lat []byte) (Point, error) {
	x, err := argument.ParseFloat(lon)
	if err != nil {
		return Point{}, err
	}
	y, err := argument.ParseFloat(lat)
	if err != nil || math.Abs(x) > 180 || math.Abs(y) > MaxLatitude {
		return Point{}, argument.Refuse("ERR invalid longitude,latitude pair")
	}
	return Point{x, y}, nil
}
