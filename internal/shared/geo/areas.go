package geo

import "math"

// areas are the ranges of scores in which Redis looks for members: the cell of the center and the cells around it, which
// cover the range. Places at longitude 180 or latitude MaxLatitude have a bit above the others of their hash, and are in
// the cells of a center at the same edge only.
type areas [][2]float64

// Areas of the search, in cells of 2^step by 2^step. A step too many leaves a part of the range out.
func (s *Search) areas() areas {
	height, width, reach := s.Radius, s.Radius, s.Radius
	if s.Box {
		height, width = s.Height/2, s.Width/2
		reach = math.Sqrt(width*width + height*height)
	}
	up := degrees(height / EarthRadius)
	end := s.From.Lat + up // the end of the range where meridians are closer
	if s.From.Lat < 0 {
		end = s.From.Lat - up
	}
	wide := degrees(width / EarthRadius / math.Cos(Radians(end)))
	least, most := Point{s.From.Lon - wide, s.From.Lat - up}, Point{s.From.Lon + wide, s.From.Lat + up}
	g := grid{steps(reach, s.From.Lat)}
	c := g.cell(s.From)
	_, north := g.bounds(c.move(g, 0, 1))
	south, _ := g.bounds(c.move(g, 0, -1))
	_, east := g.bounds(c.move(g, 1, 0))
	west, _ := g.bounds(c.move(g, -1, 0))
	if g.step > 1 && (north.Lat < most.Lat || south.Lat > least.Lat || east.Lon < most.Lon || west.Lon > least.Lon) {
		g.step--
		c = g.cell(s.From)
	}
	lo, hi := g.bounds(c)
	var out areas
	for dy := -1; dy <= 1; dy++ {
		for dx := -1; dx <= 1; dx++ {
			beyond := dy < 0 && lo.Lat < least.Lat || dy > 0 && hi.Lat > most.Lat || dx < 0 && lo.Lon < least.Lon ||
				dx > 0 && hi.Lon > most.Lon
			if g.step < 2 || !beyond {
				out = append(out, g.scores(c.move(g, dx, dy)))
			}
		}
	}
	return out
}

func (a areas) has(score float64) bool {
	for _, r := range a {
		if score >= r[0] && score < r[1] {
			return true
		}
	}
	return false
}

// steps returns the step at which the cells around a place cover a range of some meters.
func steps(meters, lat float64) int {
	const mercator = 20037726.37
	if meters == 0 {
		return Bits
	}
	step := -1
	for ; meters < mercator; meters *= 2 {
		step++
	}
	if lat = math.Abs(lat); lat > 66 {
		step--
	}
	if lat > 80 {
		step--
	}
	return min(max(step, 1), Bits)
}

// grid divides the map into 2^step by 2^step cells.
type grid struct{ step int }

type cell struct{ x, y uint64 }

func (g grid) cell(p Point) cell {
	n := float64(uint64(1) << g.step)
	return cell{uint64((p.Lon + 180) / 360 * n), uint64((p.Lat + MaxLatitude) / (2 * MaxLatitude) * n)}
}

// move returns a neighbor. A coordinate that moves goes on at the other end of the map.
func (c cell) move(g grid, dx, dy int) cell {
	mask := uint64(1)<<g.step - 1
	if dx != 0 {
		c.x = (c.x + uint64(dx)) & mask
	}
	if dy != 0 {
		c.y = (c.y + uint64(dy)) & mask
	}
	return c
}

// bounds returns the corners of a cell.
func (g grid) bounds(c cell) (lo, hi Point) {
	at := func(n uint64, limit float64) float64 { return -limit + float64(n)/float64(uint64(1)<<g.step)*(2*limit) }
	return Point{at(c.x, 180), at(c.y, MaxLatitude)}, Point{at(c.x+1, 180), at(c.y+1, MaxLatitude)}
}

// scores returns the scores of the places in a cell: from the first to before the second.
func (g grid) scores(c cell) [2]float64 {
	var bits uint64
	for i := range 32 {
		bits |= c.y>>i&1<<(2*i) | c.x>>i&1<<(2*i+1)
	}
	shift := 2 * (Bits - g.step)
	return [2]float64{float64(bits << shift), float64((bits + 1) << shift)}
}

func degrees(rad float64) float64 { return rad / (math.Pi / 180) }
