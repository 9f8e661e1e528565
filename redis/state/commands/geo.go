package commands

import (
	"bytes"
	"cmp"
	"slices"

	"kvferry/internal/shared/geo"
	"kvferry/record"
	"kvferry/redis/state"
)

func cmdGeosearchstore(s *state.Server, a [][]byte) error {
	return searchStore(s, a[2], a[1], a[3:], geo.Search{Command: "GEOSEARCHSTORE"})
}

// cmdGeoradius is GEORADIUS and GEORADIUSBYMEMBER, which change keys only with STORE or STOREDIST.
func cmdGeoradius(form geo.Form) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		return searchStore(s, a[1], nil, a[2:], geo.Search{Form: form})
	}
}

// found is a member within the range.
type found struct {
	state.Scored
	dist float64
}

// searchStore stores what a search finds at a key, or at the key of its STORE.
func searchStore(s *state.Server, key, to []byte, args [][]byte, g geo.Search) error {
	v, err := s.Find(key, record.ZSet)
	if err != nil {
		return err
	}
	g.Missing = v == nil
	g.Unknown = func(arg []byte) error { return s.Option("GEOSEARCHSTORE", arg) }
	g.Member = func(name []byte) (geo.Point, error) { return placeOf(v, name) }
	if err := g.Read(args); err != nil {
		return err
	}
	if to == nil {
		to = g.Store
	}
	if to == nil {
		return nil
	}
	if v == nil {
		s.DB.Remove(to)
		return nil
	}
	return storeFound(s, v, to, &g)
}

// placeOf returns the place of a member.
func placeOf(v *state.Value, name []byte) (geo.Point, error) {
	score, ok := v.Score(name)
	if !ok {
		return geo.Point{}, geo.ErrMember
	}
	return geo.PointOf(score), nil
}

func storeFound(s *state.Server, v *state.Value, to []byte, g *geo.Search) error {
	list, err := within(v, g)
	if err != nil {
		return err
	}
	out := s.DB.Make(record.ZSet)
	for _, f := range list {
		if g.StoreDist {
			f.Score = f.dist / g.Unit
		}
		out.SetScore(f.Member, f.Score)
	}
	s.DB.Store(to, out)
	if g.StoreDist && len(list) > 0 {
		return &state.UnsupportedError{Command: "GEOSEARCHSTORE STOREDIST", Why: "the last bits of a distance depend on the server's C library", Near: true}
	}
	return nil
}

var errNear = state.Unsupported("GEOSEARCHSTORE", "a member lies so close to the edge that the last bits of its distance decide")

// within returns the members in the range, at most as many as requested.
func within(v *state.Value, g *geo.Search) (list []found, err error) {
	v.Ranked(false, func(z state.Scored) bool {
		dist, in, near := g.Has(z.Score)
		if near {
			err = errNear
			return false
		}
		if in {
			list = append(list, found{state.Scored{Score: z.Score, Member: bytes.Clone(z.Member)}, dist})
		}
		return true
	})
	if err != nil || g.Count == 0 || g.Count >= int64(len(list)) {
		return list, err
	}
	if g.Any {
		return nil, state.Unsupported("GEOSEARCHSTORE ANY", "which members come first is unknown")
	}
	slices.SortFunc(list, func(a, b found) int {
		if g.Desc {
			a, b = b, a
		}
		return cmp.Compare(a.dist, b.dist)
	})
	if geo.Close(list[g.Count-1].dist, list[g.Count].dist) {
		return nil, errNear
	}
	return list[:g.Count], nil
}
