// Package geo has the places of Redis: scores of sorted sets that are geohashes.
package geo

import (
	"math"
	"strings"

	"kvferry/internal/shared/argument"
)

// Places are sorted sets whose scores are geohashes of 52 bits: longitude and latitude, bit by bit in turn. Places at
// longitude 180 or latitude MaxLatitude have a bit more.
const (
	Bits        = 26
	MaxLatitude = 85.05112878
	EarthRadius = 6372797.560856 // meters
)

// Point is a place, in degrees.
type Point struct{ Lon, Lat float64 }

// PointOf returns the middle of a geohash's cell. Scores that are no place have one as well, as in Redis.
func PointOf(score float64) Point {
	var lon, lat uint64
	for hash, i := bitsOf(score), 0; i < 32; i++ {
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

// bitsOf converts a score as C does on a machine of 64 bits.
func bitsOf(score float64) uint64 {
	switch {
	case score >= 1<<64:
		return 0
	case score >= 1<<63:
		return uint64(score)
	case score < -1<<63:
		return 1 << 63
	}
	return uint64(int64(score))
}

// AppendHash appends a place as a standard geohash of 11 characters, of which the last one is 0.
func AppendHash(dst []byte, p Point) []byte {
	const alphabet, cells = "0123456789bcdefghjkmnpqrstuvwxyz", 1 << Bits
	lon, lat := uint64((p.Lon+180)/360*cells), uint64((p.Lat+90)/180*cells)
	var hash uint64
	for i := range 32 {
		hash |= lat >> i & 1 << (2 * i)
		hash |= lon >> i & 1 << (2*i + 1)
	}
	for i := range 10 {
		dst = append(dst, alphabet[hash>>(52-(i+1)*5)&0x1f])
	}
	return append(dst, alphabet[0])
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

// units are meters by the names of units.
var units = map[string]float64{"m": 1, "km": 1000, "ft": 0.3048, "mi": 1609.34}

// ParseUnit returns the meters of a unit.
func ParseUnit(name []byte) (float64, error) {
	if m, ok := units[strings.ToLower(string(name))]; ok {
		return m, nil
	}
	return 0, argument.Refuse("ERR unsupported unit provided. please use M, KM, FT, MI")
}

// ParsePoint reads a longitude and a latitude.
func ParsePoint(lon, lat []byte) (Point, error) {
	x, err := argument.ParseFloat(lon)
	if err != nil {
		return Point{}, err
	}
	y, err := argument.ParseFloat(lat)
	if err != nil {
		return Point{}, err
	}
	if math.Abs(x) > 180 || math.Abs(y) > MaxLatitude {
		return Point{}, errPoint(x, y)
	}
	return Point{x, y}, nil
}
