package live

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"kvferry/format"
)

// address is a parsed server address.
type address struct {
	network string // tcp or unix
	host    string // host:port, or the path of a socket
	user    string
	db      int // -1: all
	tls     bool
	cluster bool
	shown   string // without credentials
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

// parseAddress reads redis://[user@]host[:port][/db], rediss://…, redis+cluster://…, rediss+cluster://… and
// unix:///path[?db=n]. It rejects a password, which other users could see on the command line.
func parseAddress(location string) (*address, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, format.Usagef("%s: not the address of a server", strings.SplitN(location, "@", 2)[0])
	}
	if _, ok := u.User.Password(); ok {
		return nil, format.Usagef("the address contains a password, which others can see on a command line: " +
			"put it in KVFERRY_PASSWORD or a file that --password-file names")
	}
	a := &address{network: "tcp", user: u.User.Username(), db: -1, tls: strings.HasPrefix(u.Scheme, "rediss"),
		cluster: strings.HasSuffix(u.Scheme, "+cluster")}
	path := strings.Trim(u.Path, "/")
	if u.Scheme == "unix" {
		a.network, a.host, path = "unix", u.Path, u.Query().Get("db")
	} else {
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		a.host = net.JoinHostPort(u.Hostname(), port)
	}
	if a.host == "" || u.Scheme != "unix" && u.Hostname() == "" {
		return nil, format.Usagef("%s: no server in the address: want redis://host:port", location)
	}
	if path != "" {
		if a.db, err = strconv.Atoi(path); err != nil || a.db < 0 {
			return nil, format.Usagef("%s: %q is not the number of a database", location, path)
		}
	}
	if a.cluster && a.db > 0 {
		return nil, format.Usagef("%s: a cluster has only database 0", location)
	}
	a.shown = u.Scheme + "://" + a.host
	if u.Scheme == "unix" {
		a.shown = "unix://" + u.Path
	}
	return a, nil
}

// scheme returns the URL scheme of an address.
func scheme(tls, cluster bool) string {
	s := "redis"
	if tls {
		s += "s"
	}
	if cluster {
		s += "+cluster"
	}
	return s + "://"
}

// location rebuilds the address without a password.
func (a *address) location() string {
	s := a.shown
	if a.user != "" {
		s = strings.Replace(s, "://", "://"+a.user+"@", 1)
	}
	switch {
	case a.db >= 0 && a.network == "unix":
		s += fmt.Sprintf("?db=%d", a.db)
	case a.db >= 0:
		s += fmt.Sprintf("/%d", a.db)
	}
	return s
}

// fileName returns a file name for the address: characters not allowed in file names are replaced.
func (a *address) fileName() string {
	name := "redis-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(`:/\[]`, r) {
			return '-'
		}
		return r
	}, strings.TrimPrefix(a.host, "/"))
	if a.db >= 0 {
		name += fmt.Sprintf("-%d", a.db)
	}
	return name
}
