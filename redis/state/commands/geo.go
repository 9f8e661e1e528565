package commands

import (
	"bytes"
	"math"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/geo"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// nearly is the relative difference below which the order of two distances is uncertain: the last bits of
// sines depend on the C library of the server.
const nearly = 1e-9

// search holds the options of GEOSEARCHSTORE and GEORADIUS.
type search struct {
	from          geo.Point
	members       [][]byte // the last one's place is from; all must exist
	radius        float64
	width, height float64
	box           bool
	unit          float64 // meters
	count         int64
	any, desc     bool
	storeDist     bool
	store         []byte
}

// lengths reads distances and their unit.
func (g *search) lengths(s *server.Server, a ...[]byte) ([]float64, error) {
	unit, ok := geo.Units[string(s.Upper(a[len(a)-1]))]
	if !ok {
		return nil, argument.Refuse("ERR unsupported unit provided. please use M, KM, FT, MI")
	}
	g.unit = unit
	var out []float64
	for _, b := range a[:len(a)-1] {
		f, err := argument.ParseFloat(b)
		if err != nil || f < 0 {
			return nil, argument.Refuse("ERR need numeric radius")
		}
		out = append(out, f*unit)
	}
	return out, nil
}

// read parses the options. radius is true for GEORADIUS and its kin, whose place and range precede the
// options.
func (g *search) read(s *server.Server, a [][]byte, radius bool) (err error) {
	place, area, with := radius, radius, false
	for i := 0; i < len(a) && err == nil; i++ {
		left := len(a) - i - 1
		var f []float64
		switch {
		case argument.Is(a[i], "FROMMEMBER") && left >= 1 && !radius && (!place || g.members != nil):
			place, g.members = true, append(g.members, a[i+1])
			i++
		case argument.Is(a[i], "FROMLONLAT") && left >= 2 && !radius && g.members == nil:
			place = true
			g.from, err = geo.ParsePoint(a[i+1], a[i+2])
			i += 2
		case argument.Is(a[i], "BYRADIUS") && left >= 2 && !radius && !g.box:
			if f, err = g.lengths(s, a[i+1:i+3]...); err == nil {
				area, g.radius = true, f[0]
			}
			i += 2
		case argument.Is(a[i], "BYBOX") && left >= 3 && !radius && (!area || g.box):
			if f, err = g.lengths(s, a[i+1:i+4]...); err == nil {
				area, g.box, g.width, g.height = true, true, f[0], f[1]
			}
			i += 3
		case argument.Is(a[i], "COUNT") && left >= 1:
			if g.count, err = argument.ParseInt(a[i+1]); err == nil && g.count <= 0 {
				err = argument.Refuse("ERR COUNT must be > 0")
			}
			i++
		case (argument.Is(a[i], "STORE") || argument.Is(a[i], "STOREDIST")) && radius && left >= 1:
			g.store, g.storeDist = a[i+1], argument.Is(a[i], "STOREDIST")
			i++
		case argument.Is(a[i], "STOREDIST") && !radius:
			g.storeDist = true
		case argument.Is(a[i], "ANY"):
			g.any = true
		case argument.Is(a[i], "DESC"):
			g.desc = true
		case argument.Is(a[i], "ASC"):
			g.desc = false
		case argument.Is(a[i], "WITHDIST"), argument.Is(a[i], "WITHHASH"), argument.Is(a[i], "WITHCOORD"):
			with = true
		default:
			err = s.Option("GEOSEARCHSTORE", a[i])
		}
	}
	if err == nil && (!place || !area || g.any && g.count == 0 || with && g.store != nil) {
		err = argument.ErrSyntax
	}
	return err
}

func cmdGeosearchstore(s *server.Server, a [][]byte) error {
	g := search{store: a[1]}
	if err := g.read(s, a[3:], false); err != nil {
		return err
	}
	return searchStore(s, a[2], &g)
}

// cmdGeoradius is GEORADIUS and GEORADIUSBYMEMBER, which change keys only with STORE or STOREDIST.
func cmdGeoradius(byMember bool) func(*server.Server, [][]byte) error {
	return func(s *server.Server, a [][]byte) (err error) {
		var g search
		at := 4
		if byMember {
			g.members, at = a[2:3], 3
		} else if g.from, err = geo.ParsePoint(a[2], a[3]); err != nil {
			return err
		}
		f, err := g.lengths(s, a[at:at+2]...)
		if err != nil {
			return err
		}
		g.radius = f[0]
		if err := g.read(s, a[at+2:], true); err != nil || g.store == nil {
			return err
		}
		return searchStore(s, a[1], &g)
	}
}

// found is a member within the range.
type found struct {
	state.Scored
	dist float64
}

func searchStore(s *server.Server, key []byte, g *search) error {
	v, err := s.Find(key, record.ZSet)
	if err != nil {
		return err
	}
	if v == nil {
		s.DB.Remove(g.store)
		return nil
	}
	for _, member := range g.members {
		score, ok := v.Score(member)
		if !ok {
			return argument.Refuse("ERR could not decode requested zset member")
		}
		if !geo.IsHash(score) {
			return server.Unsupported("GEOSEARCHSTORE", "the score of the member that it starts from is not a position")
		}
		g.from = geo.PointOf(score)
	}
	list, err := within(v, g)
	if err != nil {
		return err
	}
	out := s.DB.Make(record.ZSet)
	for _, f := range list {
		if g.storeDist {
			f.Score = f.dist / g.unit
		}
		out.SetScore(f.Member, f.Score)
	}
	s.DB.Store(g.store, out)
	if g.storeDist && len(list) > 0 {
		return &server.UnsupportedError{Command: "GEOSEARCHSTORE STOREDIST", Why: "the last bits of a distance depend on the server's C library", Near: true}
	}
	return nil
}

var errNear = server.Unsupported("GEOSEARCHSTORE", "a member lies so close to the edge that the last bits of its distance decide")

// within returns the members in the range, at most as many as requested.
func within(v *state.Value, g *search) (list []found, err error) {
	v.Ranked(false, func(z state.Scored) bool {
		if !geo.IsHash(z.Score) {
			return true
		}
		dist, in, near := g.has(geo.PointOf(z.Score))
		if near {
			err = errNear
			return false
		}
		if in {
			list = append(list, found{state.Scored{Score: z.Score, Member: bytes.Clone(z.Member)}, dist})
		}
		return true
	})
	if err != nil || g.count == 0 || g.count >= int64(len(list)) {
		return list, err
	}
	if g.any {
		return nil, server.Unsupported("GEOSEARCHSTORE ANY", "which members come first is unknown")
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

// close reports whether a server may compare two distances differently.
func close(a, b float64) bool { return math.Abs(a-b) <= nearly*max(a, b, 1) }

// has reports whether a place is in the range, and whether that is uncertain.
func (g *search) has(p geo.Point) (dist float64, in, near bool) {
	dist = geo.Distance(g.from, p)
	if !g.box {
		return dist, dist <= g.radius, dist > 0 && close(dist, g.radius)
	}
	high := geo.EarthRadius * math.Abs(geo.Radians(p.Lat)-geo.Radians(g.from.Lat))
	wide := geo.Distance(p, geo.Point{Lon: g.from.Lon, Lat: p.Lat})
	near = high > 0 && close(high, g.height/2) || wide > 0 && close(wide, g.width/2)
	return dist, high <= g.height/2 && wide <= g.width/2, near
}
