package format

// Server is a server that uses a format. Locations can name it: pika3.5:/data.
type Server struct {
	Name   string // as in locations
	Detail string // versions, and how the server differs
	// First and Last are the first and last version covered by the name, such as 3.0 and 3.4.
	First, Last string
}

// Served is a Format whose servers can be named in locations.
type Served interface {
	Format
	// Servers returns the servers, oldest first.
	Servers() []Server
	// For returns the format in the dialect of a server: Limits are the server's, and Create writes data that the
	// server opens. Name and reading do not change.
	For(server string) Format
	// Server returns the name given to For; "" for data that all servers open.
	Server() string
}

// Finder is a Served format that can detect which of its servers wrote a dataset, if their limits differ.
type Finder interface {
	// Found returns the format in the dialect of the detected server, or itself.
	Found(ev *Evidence) Format
}

// LocationName returns the name of a format in locations: the server's name for a dialect.
func LocationName(f Format) string {
	if s, ok := f.(Served); ok && s.Server() != "" {
		return s.Server()
	}
	return f.Name()
}

// Follower is a Format with servers that can replicate from the server of a dump.
type Follower interface {
	Format
	// Follows returns the conditions for replicating from a server of another format; ok is false if that is
	// impossible.
	Follows(source string) (conditions []string, ok bool)
}
