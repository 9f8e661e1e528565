package geo

import (
	"fmt"
	"math"
	"strings"

	"kvferry/internal/shared/argument"
)

// Form is the form of a command's arguments after its key.
type Form uint8

const (
	Options      Form = iota // GEOSEARCH and GEOSEARCHSTORE: options give place and range
	Around                   // GEORADIUS: longitude, latitude, radius, unit, options
	AroundMember             // GEORADIUSBYMEMBER: member, radius, unit, options
)

// Search holds the arguments of GEOSEARCH, GEORADIUS and related commands.
type Search struct {
	Command  string // as the client wrote it, for error replies
	Form     Form
	ReadOnly bool // the command has no STORE
	Missing  bool // the key does not exist: members are not looked up
	// Member returns the place of a member.
	Member func(name []byte) (Point, error)
	// Unknown returns the error for an argument that is no option.
	Unknown func(arg []byte) error

	From                          Point
	Radius                        float64
	Width, Height                 float64
	Box                           bool
	Unit                          float64 // meters
	Count                         int64   // 0: all
	Any, Asc, Desc                bool
	WithDist, WithHash, WithCoord bool
	Store                         []byte // of GEORADIUS
	StoreDist                     bool

	in areas // nil: not needed yet
}

// state of the options of GEOSEARCH.
type given struct{ member, place, radius, box bool }

// Read parses the arguments after the key.
func (s *Search) Read(a [][]byte) (err error) {
	switch s.Form {
	case Around:
		if s.From, err = ParsePoint(a[0], a[1]); err != nil {
			return err
		}
		a = a[2:]
	case AroundMember:
		if !s.Missing {
			s.From, err = s.Member(a[0])
		}
		a = a[1:]
	}
	if err == nil && s.Form != Options {
		if s.Form == Around || !s.Missing {
			err = s.readRadius(a)
		}
		a = a[2:]
	}
	var g given
	for len(a) > 0 && err == nil {
		n := 0
		if n, err = s.option(a); n == 0 && err == nil && s.Form == Options {
			n, err = s.shape(&g, a)
		}
		if n == 0 && err == nil {
			err = s.Unknown(a[0])
		}
		a = a[n:]
	}
	if err == nil {
		err = s.check(&g)
	}
	return err
}

// option reads an option of all forms; it returns the number of its arguments, 0 if there is none.
func (s *Search) option(a [][]byte) (n int, err error) {
	for _, flag := range []struct {
		name string
		to   *bool
	}{{"WITHDIST", &s.WithDist}, {"WITHHASH", &s.WithHash}, {"WITHCOORD", &s.WithCoord}, {"ANY", &s.Any}} {
		if argument.Is(a[0], flag.name) {
			*flag.to = true
			return 1, nil
		}
	}
	stores := s.Form != Options && !s.ReadOnly && len(a) > 1
	switch {
	case argument.Is(a[0], "ASC"):
		s.Asc, s.Desc = true, false
	case argument.Is(a[0], "DESC"):
		s.Asc, s.Desc = false, true
	case argument.Is(a[0], "COUNT") && len(a) > 1:
		if s.Count, err = argument.ParseInt(a[1]); err == nil && s.Count <= 0 {
			err = argument.Refuse("ERR COUNT must be > 0")
		}
		return 2, err
	case stores && (argument.Is(a[0], "STORE") || argument.Is(a[0], "STOREDIST")):
		s.Store, s.StoreDist = a[1], argument.Is(a[0], "STOREDIST")
		return 2, nil
	case s.Form == Options && !s.ReadOnly && argument.Is(a[0], "STOREDIST"):
		s.StoreDist = true
	default:
		return 0, nil
	}
	return 1, nil
}

// shape reads an option that gives the place or the range.
func (s *Search) shape(g *given, a [][]byte) (n int, err error) {
	switch {
	case argument.Is(a[0], "FROMMEMBER") && len(a) > 1 && !g.place:
		g.member = true
		if !s.Missing {
			s.From, err = s.Member(a[1])
		}
		return 2, err
	case argument.Is(a[0], "FROMLONLAT") && len(a) > 2 && !g.member:
		g.place = true
		s.From, err = ParsePoint(a[1], a[2])
		return 3, err
	case argument.Is(a[0], "BYRADIUS") && len(a) > 2 && !g.box:
		g.radius = true
		return 3, s.readRadius(a[1:])
	case argument.Is(a[0], "BYBOX") && len(a) > 3 && !g.radius:
		g.box, s.Box = true, true
		return 4, s.readBox(a[1:])
	}
	return 0, nil
}

func (s *Search) readRadius(a [][]byte) (err error) {
	if s.Radius, err = argument.ParseFloat(a[0]); err != nil {
		return argument.Refuse("ERR need numeric radius")
	}
	if s.Radius < 0 {
		return argument.Refuse("ERR radius cannot be negative")
	}
	s.Unit, err = ParseUnit(a[1])
	s.Radius *= s.Unit
	return err
}

func (s *Search) readBox(a [][]byte) (err error) {
	if s.Width, err = argument.ParseFloat(a[0]); err != nil {
		return argument.Refuse("ERR need numeric width")
	}
	if s.Height, err = argument.ParseFloat(a[1]); err != nil {
		return argument.Refuse("ERR need numeric height")
	}
	if s.Width < 0 || s.Height < 0 {
		return argument.Refuse("ERR height or width cannot be negative")
	}
	s.Unit, err = ParseUnit(a[2])
	s.Width, s.Height = s.Width*s.Unit, s.Height*s.Unit
	return err
}

// check refuses options that do not go together.
func (s *Search) check(g *given) error {
	with := s.WithDist || s.WithHash || s.WithCoord
	switch {
	case with && s.Form == Options && !s.ReadOnly:
		return argument.Refuse("ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	case with && s.Store != nil:
		return argument.Refuse("ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	case s.Form == Options && !g.member && !g.place:
		return argument.Refuse("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + s.Command)
	case s.Form == Options && !g.radius && !g.box:
		return argument.Refuse("ERR exactly one of BYRADIUS and BYBOX can be specified for " + s.Command)
	case s.Any && s.Count == 0:
		return argument.Refuse("ERR the ANY argument requires COUNT argument")
	}
	return nil
}

// Has reports whether Redis finds a member with a score, and its distance. near: the last bits of distances decide, which
// depend on the C library of a server.
func (s *Search) Has(score float64) (dist float64, in, near bool) {
	if s.in == nil {
		s.in = s.areas()
	}
	p := PointOf(score)
	dist = Distance(s.From, p)
	if !s.in.has(score) {
		return dist, false, false
	}
	if !s.Box {
		return dist, dist <= s.Radius, dist > 0 && Close(dist, s.Radius)
	}
	high := EarthRadius * math.Abs(Radians(p.Lat)-Radians(s.From.Lat))
	wide := Distance(p, Point{Lon: s.From.Lon, Lat: p.Lat})
	near = high > 0 && Close(high, s.Height/2) || wide > 0 && Close(wide, s.Width/2)
	return dist, high <= s.Height/2 && wide <= s.Width/2, near
}

// Close reports whether a server may compare two distances differently.
func Close(a, b float64) bool {
	const nearly = 1e-9 // relative
	return math.Abs(a-b) <= nearly*max(a, b, 1)
}

// ErrMember is the reply to a member that is not there.
var ErrMember = argument.Refuse("ERR could not decode requested zset member")

func errPoint(x, y float64) error {
	pair := strings.NewReplacer("+Inf", "inf", "-Inf", "-inf").Replace(fmt.Sprintf("%f,%f", x, y)) // as C prints it
	return argument.Refuse("ERR invalid longitude,latitude pair " + pair)
}
