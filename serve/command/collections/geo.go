package collections

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/geo"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var geoCommands = command.Functions{
	"geopos": geopos, "geohash": geohash, "geodist": geodist, "geosearch": geosearch(geo.Options, true),
	"georadius_ro": geosearch(geo.Around, true), "georadiusbymember_ro": geosearch(geo.AroundMember, true),
	"georadius": geosearch(geo.Around, false), "georadiusbymember": geosearch(geo.AroundMember, false),
}

// eachScore calls f with the scores of the members that the arguments name, nil for missing ones, in an array.
func eachScore(c *command.Call, f func(score *float64)) error {
	scores, err := scores(c, c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.W.Header(resp.Array, int64(len(c.Args)-2))
	for _, name := range c.Args[2:] {
		f(scores[string(name)])
	}
	return nil
}

func geopos(c *command.Call) error {
	return eachScore(c, func(score *float64) {
		if score == nil {
			c.W.NullArray()
			return
		}
		point(c, geo.PointOf(*score))
	})
}

// point writes a place as Redis writes its coordinates.
func point(c *command.Call, p geo.Point) {
	c.W.Header(resp.Array, 2)
	c.W.Decimal(p.Lon)
	c.W.Decimal(p.Lat)
}

func geohash(c *command.Call) error {
	return eachScore(c, func(score *float64) {
		if score == nil {
			c.W.Null()
			return
		}
		c.W.Bulk(geo.AppendHash(nil, geo.PointOf(*score)))
	})
}

func geodist(c *command.Call) (err error) {
	unit := 1.0
	switch {
	case len(c.Args) == 5:
		unit, err = geo.ParseUnit(c.Args[4])
	case len(c.Args) > 5:
		err = argument.ErrSyntax
	}
	if err != nil {
		return err
	}
	scores, err := scores(c, c.Args[1], c.Args[2:4])
	if err != nil {
		return err
	}
	from, to := scores[string(c.Args[2])], scores[string(c.Args[3])]
	if from == nil || to == nil {
		c.W.Null()
		return nil
	}
	distance(c, geo.Distance(geo.PointOf(*from), geo.PointOf(*to))/unit)
	return nil
}

// distance writes a distance with four decimals.
func distance(c *command.Call, d float64) { c.W.Bulk(strconv.AppendFloat(nil, d, 'f', 4, 64)) }

// geosearch makes a command that finds the members within a range.
func geosearch(form geo.Form, readOnly bool) func(*command.Call) error {
	return func(c *command.Call) (err error) {
		there, err := c.Walk(c.Args[1], record.ZSet, func(*record.Element) bool { return false })
		if err != nil {
			return err
		}
		g := geo.Search{Command: string(c.Args[0]), Form: form, ReadOnly: readOnly, Missing: !there,
			Member:  func(name []byte) (geo.Point, error) { return placeOf(c, name) },
			Unknown: unknownOption}
		if err := g.Read(c.Args[2:]); err != nil {
			return err
		}
		if g.Store != nil {
			return command.ErrReadOnly
		}
		s := extsort.New(c.Sorting())
		defer command.CloseAll(&err, s)
		if err := findPlaces(c, s, &g); err != nil {
			return err
		}
		return places(c, s, &g)
	}
}

// placeOf returns the place of a member of the key.
func placeOf(c *command.Call, name []byte) (geo.Point, error) {
	scores, err := scores(c, c.Args[1], [][]byte{name})
	if err != nil {
		return geo.Point{}, err
	}
	score := scores[string(name)]
	if score == nil {
		return geo.Point{}, geo.ErrMember
	}
	return geo.PointOf(*score), nil
}

// findPlaces adds the members in the range to s, with score and distance: in the order of their distances if that is
// asked for or needed for a limit, else of their scores.
func findPlaces(c *command.Call, s *extsort.Sorter, g *geo.Search) error {
	near := g.Asc || g.Desc || g.Count > 0 && !g.Any
	var failed error
	_, err := c.Walk(c.Args[1], record.ZSet, func(e *record.Element) bool {
		dist, in, _ := g.Has(e.Score)
		if !in {
			return c.Live()
		}
		order := record.RankScore(e.Score)
		if near {
			order = record.RankScore(dist)
		}
		if g.Desc {
			order = ^order
		}
		var v [16]byte
		binary.LittleEndian.PutUint64(v[:], math.Float64bits(dist/g.Unit))
		binary.LittleEndian.PutUint64(v[8:], uint64(e.Score))
		failed = s.Add(order, e.Name, v[:])
		more := !g.Any || int64(s.Len()) < g.Count
		return failed == nil && more && c.Live()
	})
	return errors.Join(err, failed)
}

// places replies with the members that were found.
func places(c *command.Call, s *extsort.Sorter, g *geo.Search) error {
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		it, err := s.Sort()
		for err == nil && c.Live() && (g.Count == 0 || n < g.Count) {
			_, member, v, end := it.Next()
			if end == io.EOF {
				return n, nil
			}
			if err = end; err == nil {
				n++
				place(c, g, member, math.Float64frombits(binary.LittleEndian.Uint64(v)), binary.LittleEndian.Uint64(v[8:]))
			}
		}
		return n, err
	})
}

// place writes a member, with distance, hash and coordinates on request.
func place(c *command.Call, g *geo.Search, member []byte, dist float64, hash uint64) {
	if with := command.Number(g.WithDist) + command.Number(g.WithHash) + command.Number(g.WithCoord); with > 0 {
		c.W.Header(resp.Array, 1+with)
	}
	c.W.Bulk(member)
	if g.WithDist {
		distance(c, dist)
	}
	if g.WithHash {
		c.W.Int(int64(hash))
	}
	if g.WithCoord {
		point(c, geo.PointOf(float64(hash)))
	}
}
