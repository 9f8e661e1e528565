package server

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/object"
)

// address is a parsed server address.
type address struct {
	network string // tcp or unix
	Host    string // host:port, or the path of a socket
	user    string
	DB      int // -1: all
	TLS     bool
	Cluster bool
	Shown   string // without credentials
}

// schemes are the URL schemes of server addresses.
var schemes = []string{"redis", "rediss", "unix", "redis+cluster", "rediss+cluster"}

// IsAddress reports whether a location is a server address.
func IsAddress(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	if !ok {
		return false
	}
	for _, s := range schemes {
		if s == scheme {
			return true
		}
	}
	return false
}

const defaultPort = "6379"

// ParseAddress reads redis://[user@]host[:port][/db], rediss://…, redis+cluster://…, rediss+cluster://… and
// unix:///path[?db=n]. It rejects a password, which other users could see on the command line.
func ParseAddress(location string) (*address, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, format.Usagef("%s: not the address of a server", object.Shown(location))
	}
	if _, ok := u.User.Password(); ok {
		return nil, format.Usagef("the address contains a password, which others can see on a command line: " +
			"put it in KVFERRY_PASSWORD or a file that --password-file names")
	}
	a := &address{network: "tcp", user: u.User.Username(), DB: -1, TLS: strings.HasPrefix(u.Scheme, "rediss"),
		Cluster: strings.HasSuffix(u.Scheme, "+cluster")}
	path := strings.Trim(u.Path, "/")
	if u.Scheme == "unix" {
		a.network, a.Host, path = "unix", u.Path, u.Query().Get("db")
	} else {
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		a.Host = net.JoinHostPort(u.Hostname(), port)
	}
	if a.Host == "" || u.Scheme != "unix" && u.Hostname() == "" {
		return nil, format.Usagef("%s: no server in the address: want redis://host:port",
			location[strings.LastIndexByte(location, '@')+1:])
	}
	if path != "" {
		if a.DB, err = strconv.Atoi(path); err != nil || a.DB < 0 {
			return nil, format.Usagef("%s: %q is not the number of a database", object.Shown(location), path)
		}
	}
	a.Shown = u.Scheme + "://" + a.Host
	if u.Scheme == "unix" {
		a.Shown = "unix://" + u.Path
	}
	return a, nil
}

// Scheme returns the URL scheme of an address.
func Scheme(tls, cluster bool) string {
	s := "redis"
	if tls {
		s += "s"
	}
	if cluster {
		s += "+cluster"
	}
	return s + "://"
}

// Location rebuilds the address without a password.
func (a *address) Location() string {
	u := url.URL{Scheme: strings.TrimSuffix(Scheme(a.TLS, a.Cluster), "://"), Host: a.Host}
	if a.user != "" {
		u.User = url.User(a.user)
	}
	switch {
	case a.network == "unix":
		u.Scheme, u.Host, u.Path = a.network, "", a.Host
		if a.DB >= 0 {
			u.RawQuery = fmt.Sprintf("db=%d", a.DB)
		}
	case a.DB >= 0:
		u.Path = fmt.Sprintf("/%d", a.DB)
	}
	return u.String()
}

// FileName returns a file name for the address: characters not allowed in file names are replaced.
func (a *address) FileName() string {
	name := "redis-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:/\[]`, r) {
			return '-'
		}
		return r
	}, strings.TrimPrefix(a.Host, "/"))
	if a.DB >= 0 {
		name += fmt.Sprintf("-%d", a.DB)
	}
	return name
}
