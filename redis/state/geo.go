package state

import (
	"bytes"
	"math"
	"slices"

	"kvferry/record"
)

// Places are sorted sets whose scores are geohashes of 52 bits: longitude and latitude, bit by bit in turn.
const (
	geoBits     = 26
	maxLatitude = 85.05112878
	earthRadius = 6372797.560856 // meters
	// nearly is how much closer to each other, relatively, two distances may be than is told apart: the last bits of
	// sines depend on the C library of the server.
	nearly = 1e-9
)

type point struct{ lon, lat float64 }

// isGeohash reports whether a score can be a place; others are never found.
func isGeohash(score float64) bool { return score >= 0 && score < 1<<(2*geoBits) }

// pointOf returns the middle of a geohash's cell.
func pointOf(score float64) point {
	var lon, lat uint64
	for hash, i := uint64(score), 0; i < geoBits; i++ {
		lat |= hash >> (2 * i) & 1 << i
		lon |= hash >> (2*i + 1) & 1 << i
	}
	middle := func(n uint64, limit float64) float64 {
		const cells = 1 << geoBits
		lo := -limit + float64(n)/cells*(2*limit)
		hi := -limit + float64(n+1)/cells*(2*limit)
		return min(max((lo+hi)/2, -limit), limit)
	}
	return point{middle(lon, 180), middle(lat, maxLatitude)}
}

func radians(deg float64) float64 { return deg * (math.Pi / 180) }

func distance(a, b point) float64 {
	v := math.Sin((radians(b.lon) - radians(a.lon)) / 2)
	if v == 0 {
		return earthRadius * math.Abs(radians(b.lat)-radians(a.lat))
	}
	u := math.Sin((radians(b.lat) - radians(a.lat)) / 2)
	return 2 * earthRadius * math.Asin(math.Sqrt(u*u+math.Cos(radians(a.lat))*math.Cos(radians(b.lat))*v*v))
}

// search is what GEOSEARCHSTORE and GEORADIUS are asked for.
type search struct {
	from          point
	member        []byte // where from is taken of
	radius        float64
	width, height float64
	box           bool
	unit          float64 // meters
	count         int64
	any, desc     bool
	storeDist     bool
	store         []byte
}

var geoUnits = map[string]float64{"M": 1, "KM": 1000, "FT": 0.3048, "MI": 1609.34}

// lengths reads distances and their unit.
func (g *search) lengths(s *State, a ...[]byte) ([]float64, error) {
	unit, ok := geoUnits[string(s.upper(a[len(a)-1]))]
	if !ok {
		return nil, &ReplyError{"ERR unsupported unit provided. please use M, KM, FT, MI"}
	}
	g.unit = unit
	var out []float64
	for _, b := range a[:len(a)-1] {
		f, err := parseFloat(b)
		if err != nil || f < 0 {
			return nil, &ReplyError{"ERR need numeric radius"}
		}
		out = append(out, f*unit)
	}
	return out, nil
}

func parsePoint(lon, lat []byte) (point, error) {
	x, err := parseFloat(lon)
	if err != nil {
		return point{}, err
	}
	y, err := parseFloat(lat)
	if err != nil || math.Abs(x) > 180 || math.Abs(y) > maxLatitude {
		return point{}, &ReplyError{"ERR invalid longitude,latitude pair"}
	}
	return point{x, y}, nil
}

// read reads the options.
func (g *search) read(s *State, a [][]byte) (err error) {
	for i := 0; i < len(a) && err == nil; i++ {
		left := len(a) - i - 1
		var f []float64
		switch {
		case is(a[i], "FROMMEMBER") && left >= 1:
			g.member = a[i+1]
			i++
		case is(a[i], "FROMLONLAT") && left >= 2:
			g.from, err = parsePoint(a[i+1], a[i+2])
			i += 2
		case is(a[i], "BYRADIUS") && left >= 2:
			if f, err = g.lengths(s, a[i+1:i+3]...); err == nil {
				g.radius = f[0]
			}
			i += 2
		case is(a[i], "BYBOX") && left >= 3:
			if f, err = g.lengths(s, a[i+1:i+4]...); err == nil {
				g.box, g.width, g.height = true, f[0], f[1]
			}
			i += 3
		case is(a[i], "COUNT") && left >= 1:
			if g.count, err = parseInt(a[i+1]); err == nil && g.count <= 0 {
				err = &ReplyError{"ERR COUNT must be > 0"}
			}
			i++
		case is(a[i], "STORE") && left >= 1:
			g.store = a[i+1]
			i++
		case is(a[i], "STOREDIST") && g.store == nil && left >= 1:
			g.store, g.storeDist = a[i+1], true
			i++
		case is(a[i], "STOREDIST"):
			g.storeDist = true
		case is(a[i], "ANY"):
			g.any = true
		case is(a[i], "DESC"):
			g.desc = true
		case is(a[i], "ASC"):
		case is(a[i], "WITHDIST"), is(a[i], "WITHHASH"), is(a[i], "WITHCOORD"):
		default:
			err = errSyntax
		}
	}
	return err
}

func cmdGeosearchstore(s *State, a [][]byte) error {
	g := search{store: a[1]}
	if err := g.read(s, a[3:]); err != nil {
		return err
	}
	return s.search(a[2], &g)
}

// cmdGeoradius is GEORADIUS and GEORADIUSBYMEMBER, which matter when they store what they find.
func cmdGeoradius(byMember bool) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) (err error) {
		var g search
		at := 4
		if byMember {
			g.member, at = a[2], 3
		} else if g.from, err = parsePoint(a[2], a[3]); err != nil {
			return err
		}
		if len(a) < at+2 {
			return errArgs
		}
		f, err := g.lengths(s, a[at:at+2]...)
		if err != nil {
			return err
		}
		g.radius = f[0]
		if err := g.read(s, a[at+2:]); err != nil || g.store == nil {
			return err
		}
		return s.search(a[1], &g)
	}
}

// found is a member within the range.
type found struct {
	scored
	dist float64
}

func (s *State) search(key []byte, g *search) error {
	m, err := s.findType(key, record.ZSet)
	if err != nil {
		return err
	}
	switch {
	case m == nil:
		s.remove(g.store)
		return nil
	case g.any:
		return unsupported("GEOSEARCHSTORE ANY", "which members come first is unknown")
	}
	if g.member != nil {
		score, ok := s.score(m, g.member)
		if !ok {
			return &ReplyError{"ERR could not decode requested zset member"}
		}
		if !isGeohash(score) {
			return unsupported("GEOSEARCHSTORE", "the score of the member that it starts from is not a position")
		}
		g.from = pointOf(score)
	}
	list, err := s.within(m, g)
	if err != nil {
		return err
	}
	out := s.fresh(record.ZSet)
	for _, f := range list {
		if g.storeDist {
			f.score = f.dist / g.unit
		}
		s.putScore(out, f.member, f.score)
	}
	s.put(g.store, out)
	if g.storeDist && len(list) > 0 {
		return &UnsupportedError{"GEOSEARCHSTORE STOREDIST", "the last bits of a distance depend on the server's C library", true}
	}
	return nil
}

var errNear = unsupported("GEOSEARCHSTORE", "a member lies so close to the edge that the last bits of its distance decide")

// within returns the members in the range, as many as are asked for.
func (s *State) within(m *meta, g *search) (list []found, err error) {
	s.ranked(m, false, func(z scored) bool {
		if !isGeohash(z.score) {
			return true
		}
		dist, in, near := g.has(pointOf(z.score))
		if near {
			err = errNear
			return false
		}
		if in {
			list = append(list, found{scored{z.score, bytes.Clone(z.member)}, dist})
		}
		return true
	})
	if err != nil || g.count == 0 || g.count >= int64(len(list)) {
		return list, err
	}
	slices.SortFunc(list, func(a, b found) int {
		c := 0
		if a.dist != b.dist {
			c = map[bool]int{true: -1, false: 1}[a.dist < b.dist]
		}
		if g.desc {
			return -c
		}
		return c
	})
	if close(list[g.count-1].dist, list[g.count].dist) {
		return nil, errNear
	}
	return list[:g.count], nil
}

// close reports whether two distances may compare otherwise on a server.
func close(a, b float64) bool { return math.Abs(a-b) <= nearly*max(a, b, 1) }

// has reports whether a place is in the range, and whether that is near to be otherwise.
func (g *search) has(p point) (dist float64, in, near bool) {
	dist = distance(g.from, p)
	if !g.box {
		return dist, dist <= g.radius, dist > 0 && close(dist, g.radius)
	}
	high := earthRadius * math.Abs(radians(p.lat)-radians(g.from.lat))
	wide := distance(p, point{g.from.lon, p.lat})
	near = high > 0 && close(high, g.height/2) || wide > 0 && close(wide, g.width/2)
	return dist, high <= g.height/2 && wide <= g.width/2, near
}
